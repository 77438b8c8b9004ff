# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Days and folders of photos by their paths."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from .capture_dates import parse_names
from .captures import Capture
from .cells import TABLES
from .labeled_images import LabeledImages, recognize_split
from .spellings import normalize_name

LISTS = '.txt', *TABLES


def add_names(
    photos: LabeledImages, from_exif: Mapping[str, Capture]
) -> dict[str, Capture]:
    """Complete the captures of photos by their paths below the source.

    Args:
        photos (LabeledImages): The photos.
        from_exif (Mapping[str, Capture]): Result of :func:`read_exif` by
            path.
    """
    source = Path(photos.source)
    # the photos of a model may be gone, and their folder with them
    is_list = source.suffix.lower() in LISTS and not source.is_dir()
    root = source.parent if is_list else source
    parts = [
        _split_path(path, root, name)
        for path, name in zip(photos.paths, photos.names, strict=True)
    ]
    captures = {}
    for path, name, names, day in zip(
        photos.paths, photos.names, parts, parse_names(parts), strict=True
    ):
        exif = from_exif.get(path, Capture())
        captures[path] = Capture(
            exif.day or str(day or ''),
            exif.camera,
            '/'.join(_drop_class(names[:-1], name)),
        )
    return captures


def _split_path(path: str, root: Path, name: str | None) -> tuple[str, ...]:
    """Return the names of folders and file below a folder.

    For a file elsewhere, such as one added to a model, it is the folder named
    as the class; without such a folder, return the file name alone.
    """
    if Path(path).is_relative_to(root):
        return Path(path).relative_to(root).parts
    parts = Path(path).parts
    starts = [i for i, x in enumerate(parts[:-1]) if normalize_name(x) == name]
    return parts[starts[-1] :] if starts else parts[-1:]


def _drop_class(folders: Iterable[str], name: str | None) -> list[str]:
    """Drop the folders that name the class or a split."""
    return [
        folder
        for folder in folders
        if (normalize_name(folder) or folder) != name
        and recognize_split(folder) is None
    ]
