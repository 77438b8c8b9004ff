# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Remove photos from a model, or move them to another class."""

from collections.abc import Mapping
from dataclasses import replace

from mmclca.checkpoints.gate.photo_table import PhotoFiles
from mmclca.datasets.photos import check_photos
from mmclca.errors import Error
from mmclca.utils.messages import join_first

from .confirmation import ConfirmationError
from .fit_folder import FitFolder
from .log import find_log
from .record import FitRecord
from .refitting import Refit, build_images, read_learned, read_undamaged
from .renaming import rename

MIN_CLASSES = 2


def remove_class(
    files: FitFolder, name: str, force: bool, device: str | None
) -> None:
    """Remove a class; see :meth:`FittedModel.remove_class`."""
    with find_log() as log, files.locked():
        previous = read_undamaged(files)
        check_class(files, previous, name)
        photos = {x.path: None for x in read_learned(files) if x.label == name}
        _relabel(files, previous, photos, force, device).run(log)


def rename_class(
    files: FitFolder, name: str, new: str, force: bool, device: str | None
) -> None:
    """Rename or join a class; see :meth:`FittedModel.rename_class`."""
    with find_log() as log, files.locked():
        previous = read_undamaged(files)
        check_class(files, previous, name)
        if new not in previous.photos.classes:
            rename(files, previous, name, new, log, force)
            return
        if new == name:
            raise Error(f'class {name!r} already has this name')
        if not force:
            raise ConfirmationError(
                'change.would_join', name=repr(name), new=repr(new)
            )
        photos = {x.path: new for x in read_learned(files) if x.label == name}
        _relabel(files, previous, photos, force, device).run(log)


def move_photos(
    files: FitFolder,
    labels: Mapping[str, str | None],
    force: bool,
    device: str | None,
) -> None:
    """Move or remove photos; see :meth:`FittedModel.move_photos`."""
    with find_log() as log, files.locked():
        previous = read_undamaged(files)
        for name in {*labels.values()} - {None}:
            check_class(files, previous, str(name))
        change = _relabel(files, previous, labels, force, device)
        present = change.checked.photos.classes
        if lost := [x for x in previous.photos.classes if x not in present]:
            raise Error(
                f'class {join_first(lost)} would have no photos; remove or '
                'rename the class instead'
            )
        change.run(log)


def check_class(files: FitFolder, record: FitRecord, name: str) -> None:
    """Raise an ``Error`` if a class is missing in a model."""
    classes = record.photos.classes
    if name not in classes:
        raise Error(
            f'{files.path} has no class {name!r}; its classes are '
            f'{join_first(classes, 8)}'
        )


def _relabel(
    files: FitFolder,
    previous: FitRecord,
    labels: Mapping[str, str | None],
    force: bool,
    device: str | None,
) -> Refit:
    """Prepare a model with other labels of some photos; None removes them."""
    learned = read_learned(files)
    paths = {photo.path for photo in learned}
    if missing := [path for path in labels if path not in paths]:
        raise Error(
            f'{files.table} does not list {join_first(missing, 3)} as used; '
            'choose photos of the model'
        )
    old = {photo.path: photo.label for photo in learned}
    changed = {x: label for x, label in labels.items() if label != old[x]}
    if not changed:
        raise Error('no photo would change its class; the model is unchanged')
    present = {path: label for path, label in (old | changed).items() if label}
    rows = [
        replace(photo, label=present[photo.path])
        for photo in learned
        if photo.path in present
    ]
    names = {old[path] for path in changed} | {*changed.values()} - {None}
    if len({row.label for row in rows}) < MIN_CLASSES:
        raise Error(
            f'{files.path} would have fewer than {MIN_CLASSES} classes; add '
            'another class first'
        )
    images = build_images(rows, previous, rows)
    checked = check_photos(images, PhotoFiles.from_rows(rows, files.path))
    photos, kept = previous.photos, {row.path for row in rows}
    pairs = photos.near_duplicates
    if pairs is not None:  # those of removed photos would be listed
        pairs = [pair for pair in pairs if kept.issuperset(pair)]
    return Refit(
        files,
        replace(previous, photos=replace(photos, near_duplicates=pairs)),
        checked,
        sorted(map(str, names)),
        is_changed=True,
        force=force,
        device=device,
    )
