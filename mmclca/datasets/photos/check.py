# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Check photos: unreadable files, duplicates and label conflicts."""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import starmap

from mmclca.checkpoints.gate.photo_table import PhotoFiles
from mmclca.errors import Error

from .capture_names import add_names
from .copies import ImageSummary, find_copies, keys_by, summarize_images
from .labeled_images import LabeledImages
from .problems import Problem
from .spellings import visual_key
from .spreads import Spread, find_spreads

# copies in several splits: the copy in the split of lowest rank is kept
_RANKS = {'test': 0, 'val': 1, 'train': 2, '': 2}


@dataclass
class PhotoCheck:
    """Usable photos, and the skipped ones with reasons.

    Args:
        photos (LabeledImages): Usable photos.
        unreadable (dict[str, str]): Problems of unreadable files, by path.
        duplicates (list[tuple[str, str]]): Skipped and kept duplicate in the
            same class and split.
        conflicting_labels (list[tuple[str, ...]]): Copies of a photo in
            several classes, all skipped.
        cross_split_duplicates (list[tuple[str, str]]): Skipped photo, and its
            kept copy in another split: test before validation before
            training.
        untrained_classes (dict[str, int]): Skipped classes without training
            photos, with their number of photos.
        files (PhotoFiles): SHA-256 by readable photo, and whether to open
            its file.
        near_duplicates (list[tuple[str, str]]): Result from
            :func:`mmclca.datasets.near_duplicates.find_near_duplicates`.
    """

    photos: LabeledImages
    unreadable: dict[str, str]
    duplicates: list[tuple[str, str]]
    conflicting_labels: list[tuple[str, ...]]
    cross_split_duplicates: list[tuple[str, str]]
    untrained_classes: dict[str, int]
    files: PhotoFiles = field(default_factory=PhotoFiles)
    near_duplicates: list[tuple[str, str]] = field(default_factory=list)

    @property
    def near_duplicate_counts(self) -> dict[str, int]:
        """Near-duplicates within each class that has some."""
        photos = self.photos
        pairs = self._near_duplicates(is_same=True)
        paths = {path for pair in pairs for path in pair}
        names = zip(photos.paths, photos.names, strict=True)
        return dict(Counter(name for path, name in names if path in paths))

    @property
    def conflicting_near_duplicates(self) -> list[tuple[str, str]]:
        """Near-duplicates in two classes."""
        return self._near_duplicates(is_same=False)

    def _near_duplicates(self, is_same: bool) -> list[tuple[str, str]]:
        """Select usable pairs with equal or unequal classes."""
        photos = self.photos
        class_of = dict(zip(photos.paths, photos.labels, strict=True))
        pairs = [x for x in self.near_duplicates if class_of.keys() >= {*x}]
        return [
            pair
            for pair in pairs
            if (class_of[pair[0]] == class_of[pair[1]]) == is_same
        ]

    @property
    def single_photo_classes(self) -> list[str]:
        """Classes with one training photo."""
        photos = self.photos
        counts = photos.select(photos.to_train()).counts()
        return [name for name, n in counts.items() if n == 1]

    @property
    def similar_class_names(self) -> list[tuple[str, ...]]:
        """Groups of class names with the same :func:`visual_key`."""
        names = {name: visual_key(name) for name in self.photos.classes}
        return [(*x,) for x in keys_by(names).values() if len(x) > 1]

    @property
    def cross_split_groups(self) -> list[str]:
        """Groups shared by training and validation or test."""
        photos = self.photos
        trained = photos.select(photos.to_train())
        tested = photos.without({*trained.paths})
        return sorted({*(trained.groups or ())} & {*(tested.groups or ())})

    @property
    def spreads(self) -> list[Spread]:
        """Spread of the training photos over days, cameras and groups."""
        return find_spreads(self.photos.select(self.photos.to_train()))

    def list_problems(self) -> list[Problem]:
        """List skipped photos and possible mistakes, by kind."""
        return list(_find_problems(self))


def check_photos(
    photos: LabeledImages, checked_before: PhotoFiles | None = None
) -> PhotoCheck:
    """Open photos, and skip unreadable files, duplicates and conflicts.

    Args:
        photos (LabeledImages): All photos.
        checked_before (PhotoFiles, optional): Photos of a model, which are
            not opened again. Defaults to None.

    Returns:
        PhotoCheck: The usable photos. Labels are renumbered if a class is
        skipped.

    Raises:
        Error: If fewer than two classes have training photos.
    """
    checked_before = checked_before or PhotoFiles()
    summaries = {
        path: ImageSummary('', sha256)
        for path, sha256 in checked_before.sha256.items()
    }
    summaries |= summarize_images(
        [path for path in photos.paths if path not in summaries]
    )
    readable = {path: x for path, x in summaries.items() if not x.problem}
    unreadable = {
        path: x.problem for path, x in summaries.items() if x.problem
    }
    copies = _sort_copies(photos, find_copies(readable))
    from_exif = {path: x.capture for path, x in readable.items()}
    captures = add_names(photos, from_exif | photos.captures)
    photos = replace(photos, captures=captures)
    usable = photos.without(copies.list_skipped() | unreadable.keys())
    labels = (usable.labels[i] for i in usable.to_train())
    trained = sorted({label for label in labels if label is not None})
    trained_classes = {usable.classes[label] for label in trained}
    checked = PhotoCheck(
        photos=usable.select_classes(trained),
        unreadable=unreadable,
        duplicates=copies.duplicates,
        conflicting_labels=copies.conflicting_labels,
        cross_split_duplicates=copies.cross_split_duplicates,
        untrained_classes={
            name: number
            for name, number in usable.counts().items()
            if name not in trained_classes
        },
        files=replace(
            checked_before,
            sha256={path: x.digest for path, x in readable.items()},
        ),
    )
    if len(trained) < 2:
        problems = '; '.join(x.describe() for x in checked.list_problems())
        raise Error(
            f'{photos.source}: at least two classes with training photos '
            f'are needed, found {len(trained)} of '
            f'{len(photos.classes)} ({problems})'
        )
    return checked


@dataclass(frozen=True)
class _Copies:
    """Copies of photos; see :class:`PhotoCheck` for the fields."""

    duplicates: list[tuple[str, str]] = field(default_factory=list)
    conflicting_labels: list[tuple[str, ...]] = field(default_factory=list)
    cross_split_duplicates: list[tuple[str, str]] = field(default_factory=list)

    def list_skipped(self) -> set[str]:
        """Return the paths of all photos that are not used."""
        pairs = self.duplicates + self.cross_split_duplicates
        return {path for path, _ in pairs}.union(*self.conflicting_labels)


def _sort_copies(photos: LabeledImages, groups: list[list[str]]) -> _Copies:
    """Sort groups of equal photos by labels and splits."""
    labels = dict(zip(photos.paths, photos.labels, strict=True))
    splits = dict(zip(photos.paths, photos.splits, strict=True))
    copies = _Copies()
    for paths in groups:
        if len({labels[path] for path in paths}) > 1:
            copies.conflicting_labels.append(tuple(paths))
            continue
        kept = min(paths, key=lambda path: _RANKS[splits[path]])
        for path in paths:
            if path == kept:
                continue
            if splits[path] == splits[kept]:
                copies.duplicates.append((path, kept))
            else:
                copies.cross_split_duplicates.append((path, kept))
    return copies


def _find_problems(checked: PhotoCheck) -> Iterator[Problem]:
    """Yield a problem per kind of skipped photo and possible mistake."""
    photos = checked.photos
    source = photos.source
    folder = source if os.path.isdir(source) else os.path.dirname(source)

    def shorten(*paths: str) -> tuple[str, ...]:
        relative = (os.path.relpath(path, folder) for path in paths)
        return tuple(
            os.fsencode(path).decode(errors='replace') for path in relative
        )

    for note in photos.notes:
        yield Problem('assumption', note=note)
    reasons = {path: str(note) for path, note in photos.unused.items()}
    for paths in keys_by(reasons).values():
        cases = tuple(map(shorten, paths))
        yield Problem('unused', cases, note=photos.unused[paths[0]])
    cases_by_kind = {
        'hidden': map(shorten, sorted(photos.hidden)),
        'unreadable': (
            (*shorten(path), problem)
            for path, problem in checked.unreadable.items()
        ),
        'duplicates': starmap(shorten, checked.duplicates),
        'conflicting_labels': starmap(shorten, checked.conflicting_labels),
        'conflicting_near_duplicates': starmap(
            shorten, checked.conflicting_near_duplicates
        ),
        'cross_split_duplicates': starmap(
            shorten, checked.cross_split_duplicates
        ),
        'untrained_classes': (
            (name, f'{number} in val or test')
            for name, number in checked.untrained_classes.items()
        ),
        'similar_class_names': checked.similar_class_names,
        'cross_split_groups': (
            (group,) for group in checked.cross_split_groups
        ),
        'single_photo_classes': (
            (name,) for name in checked.single_photo_classes
        ),
    }
    for problem_kind, cases in cases_by_kind.items():
        problem = Problem(problem_kind, tuple(cases))
        if problem.cases:
            yield problem
