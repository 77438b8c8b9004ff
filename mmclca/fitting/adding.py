# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Add a class, or photos of a class, to a fitted model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mmclca.apis import find_images
from mmclca.checkpoints.gate.photo_table import (
    PhotoFiles,
    PhotoRow,
    compute_sha256,
)
from mmclca.datasets.photos import LabeledImages, check_photos
from mmclca.datasets.photos.app_archive import (
    is_archive,
    label_photos,
    read_facts,
    unpack_archive,
)
from mmclca.errors import Error
from mmclca.utils.messages import join_first

from . import console_text
from .change_text import describe_known_photos
from .confirmation import check_name
from .fit_folder import FitFolder
from .log import Log, find_log
from .record import FitRecord
from .refitting import Refit, build_images, read_learned, read_undamaged

ADVICE = 'give a folder of photos of one class'


@dataclass(frozen=True)
class NewPhotos:
    """Photos to add to a model.

    Args:
        source (Path): Folder or table of the photos, for messages.
        labels (dict[str, str]): Class by path.
        digests (dict[str, str | None]): SHA-256 by path, None for unreadable
            photos.
    """

    source: Path
    labels: dict[str, str]
    digests: dict[str, str | None]

    @property
    def classes(self) -> list[str]:
        """Classes of the photos."""
        return sorted({*self.labels.values()})


def add_photos(
    files: FitFolder,
    folder: Path,
    name: str | None,
    force: bool,
    device: str | None,
) -> None:
    """Add a photo folder or archive; see :meth:`FittedModel.add_class`."""
    if is_archive(folder) and folder.is_file():
        folder = unpack_archive(folder)
    facts = None if name else read_facts(folder)
    if name is None and facts is None:
        _check_one_class(folder)
    with find_log() as log, files.locked():
        previous = read_undamaged(files)
        classes = previous.photos.classes
        if facts:
            facts.check_model(folder, classes)
            labels = label_photos(folder, facts)
            digests = {path: compute_sha256(path) for path in labels}
        else:
            digests = _compute_digests(folder)
            labels = dict.fromkeys(digests, name or folder.name)
        new = NewPhotos(folder, labels, digests)
        if not force:
            for new_name in new.classes:
                check_name(new_name, classes)
        _add(files, previous, new, log, force, device)


def add_labeled_photos(
    files: FitFolder,
    labels: Mapping[str, str],
    source: Path,
    device: str | None = None,
    force: bool = True,
) -> None:
    """Add photos of several classes to a model, and refit its classifier.

    Args:
        files (FitFolder): Model folder.
        labels (Mapping[str, str]): Class by path.
        source (Path): Table or folder with the labels, for messages.
        device (str, optional): Device. Defaults to None: a GPU if available.
        force (bool): Whether to change the model although a new class
            resembles another one, or the accuracy falls below its interval.
            Defaults to True.

    Raises:
        ConfirmationError: If the change needs ``force``. The model does not
            change.
        Error: If the model is damaged, or has a photo in another class.
    """
    digests = {path: compute_sha256(path) for path in labels}
    with find_log() as log, files.locked():
        previous = read_undamaged(files)
        new = NewPhotos(source, {**labels}, digests)
        for name in () if force else new.classes:
            check_name(name, previous.photos.classes)
        _add(files, previous, new, log, force, device)


def _add(
    files: FitFolder,
    previous: FitRecord,
    new: NewPhotos,
    log: Log,
    force: bool,
    device: str | None,
) -> None:
    learned = read_learned(files)
    # an interrupted call may have learned these photos
    photo_files = PhotoFiles.from_rows(learned, files.path).confirm(
        {x.path for x in learned if new.digests.get(x.path) == x.sha256}
    )
    images = join_photos(learned, previous, new)
    checked = check_photos(images, photo_files)
    record = previous.with_photos(checked)
    _check_learned(previous, record, new.classes)
    is_changed = record.photos.counts != previous.photos.counts
    if not is_changed:
        warning = describe_known_photos(join_first(new.classes))
        log.print_lines(console_text.format_facts([warning]))
    Refit(
        files, previous, checked, new.classes, is_changed, force, device
    ).run(log)


def _compute_digests(folder: Path) -> dict[str, str | None]:
    """Return the SHA-256 of the photos in a folder; raise without any."""
    if folder.is_file():
        raise Error(f'{folder} is a file; {ADVICE}')
    if not folder.is_dir():
        raise FileNotFoundError(f'folder {folder} does not exist; {ADVICE}')
    digests = {path: compute_sha256(path) for path in find_images([folder])}
    if not digests:
        raise Error(f'{folder} has no photos; {ADVICE}')
    return digests


def join_photos(
    learned: Sequence[PhotoRow], record: FitRecord, new: NewPhotos
) -> LabeledImages:
    """Add new photos to the photos of a model."""
    _check_class(learned, new)
    paths_in_model = {photo.path for photo in learned}
    digests = {photo.sha256 for photo in learned}
    added = [
        path
        for path, sha256 in new.digests.items()
        if path not in paths_in_model and sha256 not in digests
    ]
    groups = {path: path if learned[0].group else '' for path in added}
    rows = [PhotoRow(path, new.labels[path], groups[path]) for path in added]
    return build_images([*learned, *rows], record, learned)


def _check_class(learned: Sequence[PhotoRow], new: NewPhotos) -> None:
    """Refuse photos learned as another class."""
    labels: Mapping[str | None, str] = {x.sha256: x.label for x in learned}
    other_labels = [
        labels[sha256]
        for path, sha256 in new.digests.items()
        if labels.get(sha256, new.labels[path]) != new.labels[path]
    ]
    if other_labels:
        classes = join_first(sorted({*other_labels}), 3)
        raise Error(
            f'{new.source}: {len(other_labels)} of {len(new.digests)} photos '
            f'are already in the model as {classes}; remove them, or move '
            'them to the other class and fit again'
        )


def _check_one_class(folder: Path) -> None:
    """Refuse a folder of class folders."""
    paths = [Path(x).relative_to(folder) for x in find_images([folder])]
    folders = sorted({path.parts[0] for path in paths if path.parent.parts})
    if len(folders) > 1 and all(path.parent.parts for path in paths):
        raise Error(
            f'{folder} has {len(folders)} folders of photos, expected one '
            f'class; give one folder, such as {folder / folders[0]}, or '
            'a class name if all photos show one class'
        )


def _check_learned(
    previous: FitRecord, record: FitRecord, names: Sequence[str]
) -> None:
    """Refuse additions without new photos or with a lost class."""
    classes = record.photos.classes
    lost = [x for x in previous.photos.classes if x not in classes]
    absent = [name for name in names if name not in classes]
    if lost or absent:
        result = f'would remove {", ".join(lost)}' if lost else 'no new photos'
        problems = '; '.join(x.describe() for x in record.photos.problems)
        reason = problems or 'photographs.csv has other classes'
        name = join_first(absent or names)
        raise Error(f'class {name} not added: {result} ({reason})')
