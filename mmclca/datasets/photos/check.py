# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Check photos: unreadable files, duplicates and label conflicts."""

import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from hashlib import sha256
from io import BytesIO
from itertools import pairwise, starmap
from math import ceil, floor

import numpy as np
from PIL import Image, ImageOps

from mmclca.errors import Error
from mmclca.utils.files import read_bytes
from mmclca.utils.messages import track

from ..decoding import (
    crop_rows,
    decode,
    decode_by_pillow,
    open_image,
    reserved,
)
from ..image_files import check_image
from .labeled_images import LabeledImages
from .problems import Problem
from .spellings import visual_key

# copies in several splits: the copy in the split of lowest rank is kept
_RANKS = {'test': 0, 'val': 1, 'train': 2, '': 2}
_THREADS = 8  # decoders release the interpreter lock
_SIDE = 16  # pixels per side of the thumbnails for comparison
# Thumbnails of copies in several formats differ less than this. Other pairs
# seldom do; decoding both is then the only cost.
_TOLERANCE = 4
# Pillow shrinks truncated JPEG files without an error
_LENIENT = 'JPEG', 'MPO'
_NO_COLORS = 'F', 'I'


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
        digests (dict[str, str]): SHA-256 of readable files, by path.
        unopened (dict[str, str]): SHA-256 of unopened files, by path.
        near_duplicates (list[tuple[str, str]]): Result from
            :func:`find_near_duplicates`.
    """

    photos: LabeledImages
    unreadable: dict[str, str]
    duplicates: list[tuple[str, str]]
    conflicting_labels: list[tuple[str, ...]]
    cross_split_duplicates: list[tuple[str, str]]
    untrained_classes: dict[str, int]
    digests: dict[str, str] = field(default_factory=dict)
    unopened: dict[str, str] = field(default_factory=dict)
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

    def list_problems(self) -> list[Problem]:
        """List skipped photos and possible mistakes, by kind."""
        return list(_find_problems(self))


def check_photos(
    photos: LabeledImages, unopened: dict[str, str] | None = None
) -> PhotoCheck:
    """Open photos, and skip unreadable files, duplicates and conflicts.

    Args:
        photos (LabeledImages): All photos.
        unopened (dict[str, str], optional): SHA-256 by path of previously
            checked files, which are not opened. Defaults to None.

    Returns:
        PhotoCheck: The usable photos. Labels are renumbered if a class is
        skipped.

    Raises:
        Error: If fewer than two classes have training photos.
    """
    unopened = unopened or {}
    summaries = {path: ImageSummary('', x) for path, x in unopened.items()}
    summaries |= summarize_images(
        [x for x in photos.paths if x not in unopened]
    )
    readable = {path: x for path, x in summaries.items() if not x.problem}
    unreadable = {
        path: x.problem for path, x in summaries.items() if x.problem
    }
    copies = _sort_copies(photos, find_copies(readable))
    usable = photos.without(copies.list_skipped() | unreadable.keys())
    trained = sorted({usable.labels[i] for i in usable.to_train()})
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
        digests={path: x.digest for path, x in readable.items()},
        unopened=unopened,
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
        yield Problem('assumption', reason=note)
    for reason, paths in keys_by(photos.unused).items():
        yield Problem('unused', tuple(map(shorten, paths)), reason)
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


@dataclass
class ImageSummary:
    """Size, SHA-256 and thumbnail of an image file, or its problem.

    ``size`` starts with the shorter side, to ignore rotation by EXIF.
    ``thumbnail`` is flat, uint8; None if not read.
    """

    problem: str
    digest: str = ''
    size: tuple[int, int] = (0, 0)
    thumbnail: np.ndarray | None = None


def summarize_images(paths: Sequence[str]) -> dict[str, ImageSummary]:
    """Summarize image files in several threads; JPEG at reduced size."""
    with ThreadPoolExecutor(_THREADS) as pool:
        summaries = pool.map(_summarize, paths)
        summaries = track(summaries, 'Checking photos', len(paths))
        return dict(zip(paths, summaries, strict=True))


def find_copies(summaries: dict[str, ImageSummary]) -> list[list[str]]:
    """Group files with equal bytes or equal pixels, in the order of ``found``.

    Only files with similar thumbnails are decoded. Files without a thumbnail
    are compared by bytes only.
    """
    copies = keys_by({path: x.digest for path, x in summaries.items()})
    first = {
        paths[0]: summaries[paths[0]].size
        for paths in copies.values()
        if summaries[paths[0]].thumbnail is not None
    }
    similar = [
        path
        for paths in keys_by(first).values()
        for path in _similar(paths, summaries)
    ]
    with ThreadPoolExecutor(_THREADS) as pool:
        digests = pool.map(_digest_pixels, similar)
        pixels = dict(zip(similar, digests, strict=True))
    images = {
        path: pixels.get(copies[x.digest][0], x.digest)
        for path, x in summaries.items()
    }
    return [paths for paths in keys_by(images).values() if len(paths) > 1]


def _summarize(path: str) -> ImageSummary:
    problem = _problem_of_name(path)
    if problem:
        return ImageSummary(problem)
    try:
        content = read_bytes(path)
        size, thumbnail = _size_and_thumbnail(content)
    except Exception as error:  # decoders raise many types
        problem = check_image(path, quick=True)
        return ImageSummary(problem or f'{type(error).__name__}: {error}')
    return ImageSummary('', sha256(content).hexdigest(), size, thumbnail)


def _size_and_thumbnail(content: bytes) -> tuple[tuple[int, int], np.ndarray]:
    """Return size and thumbnail, as in :class:`ImageSummary`.

    Raises an error of any type if the image is unreadable.
    """
    with open_image(BytesIO(content)) as image:
        size = tuple(sorted(image.size))
        if image.format in _LENIENT or image.mode in _NO_COLORS:
            problem = check_image(content, quick=True)
            if problem:
                raise Error(problem)
        with reserved(image, draft=('RGB', (8 * _SIDE, 8 * _SIDE))):
            ImageOps.exif_transpose(image, in_place=True)
            return size, _thumbnail(image)


def _thumbnail(image: Image.Image) -> np.ndarray:
    """Resize to ``_SIDE`` x ``_SIDE`` in bands, to save memory; flatten."""
    width, height = image.size
    rows = []
    for ends in pairwise(np.linspace(0, height, _SIDE + 1).tolist()):
        first, last = floor(ends[0]), ceil(ends[1])
        band = crop_rows(image, first, last).convert('RGB')
        box = 0, ends[0] - first, width, ends[1] - first
        row = band.resize((_SIDE, 1), Image.Resampling.BOX, box)
        rows.append(np.asarray(row))
    return np.stack(rows).reshape(-1)


def _problem_of_name(path: str) -> str:
    """Return why a path cannot be written to a list, or an empty string."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return 'file name is not UTF-8; rename it'
    breaks = any(character in path for character in '\n\r')
    return 'file name has a line break; rename it' * breaks


def keys_by(values: dict) -> dict:
    """Group the keys of a dict by value."""
    keys = defaultdict(list)
    for key, value in values.items():
        keys[value].append(key)
    return keys


def _similar(
    paths: list[str], summaries: dict[str, ImageSummary]
) -> list[str]:
    """Return the files whose thumbnails resemble another one."""
    small = np.stack([summaries[path].thumbnail for path in paths])
    small = small.astype(np.int16)
    means = small.mean(1)
    order = means.argsort()
    ends = np.searchsorted(means[order], means[order] + _TOLERANCE, 'right')
    similar = set()
    for i, end in enumerate(ends):
        candidates = order[i + 1 : end]
        for step in (64, 1):  # a few values exclude most candidates
            away = small[candidates, ::step] - small[order[i], ::step]
            candidates = candidates[np.abs(away).max(1) <= _TOLERANCE]
        similar |= {*candidates, order[i]} if len(candidates) else set()
    return [paths[i] for i in sorted(similar)]


def _digest_pixels(path: str) -> str:
    content = read_bytes(path)
    # OpenCV's JPEG decoder rounds differently from most programs
    is_jpeg = content.startswith(b'\xff\xd8')
    with open_image(BytesIO(content)) as opened, reserved(opened):
        image = decode_by_pillow(content) if is_jpeg else decode(content)
        digest = sha256(repr(image.shape).encode())
        digest.update(image)
        return digest.hexdigest()
