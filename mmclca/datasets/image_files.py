# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Find image files, and check whether they are complete."""

import glob
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from io import BytesIO, TextIOBase
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import Image

from mmclca.errors import Error
from mmclca.utils.files import open_file
from mmclca.utils.image_suffixes import IMAGE_SUFFIXES as IMAGE_SUFFIXES
from mmclca.utils.image_suffixes import PHOTO_SUFFIXES

from .decoding import (
    BY_PILLOW,
    UndecodedError,
    decode,
    open_image,
    reserved,
    warn_once,
)

MISSING = 'missing'
EMPTY = 'empty file'

_SOURCES = str, os.PathLike, bytes, bytearray, memoryview, Image.Image
_THREADS = 16  # the disk or network limits the reading of headers
_JPEG_END = b'\xff\xd9'
_END_MARKERS = dict(PNG=b'IEND\xaeB`\x82', JPEG=_JPEG_END, MPO=_JPEG_END)
_TAIL = 4096
# folders created by operating systems, storage devices and programs
_SYSTEM = re.compile(
    r'\..*|__macosx|__pycache__|_?thumb(nail)?s|\$?recycle([rd]|[._ ]?bin)'
    r'|lost\+found|lost\.dir|found\.\d+|dfsrprivate|system volume information'
    r'|network trash folder|temporary items|trashbox|.*\.lrdata|\$extend'
    r'|@(__thumb|eadir|recently-snapshot|recycle|sharebin|snaps?|syno[^.]*|tmp)'
    r'|[#~](recycle|snapshots?)',
    re.IGNORECASE,
)


def is_system(name: str) -> bool:
    """Return whether a name is hidden or a folder of the system."""
    return bool(_SYSTEM.fullmatch(name))


def files_below(folder: str, skipped: list[str] | None = None) -> list[str]:
    """List the paths of files in a folder and all subfolders, sorted.

    Links are followed, except those to a parent folder. Hidden files and
    system folders are skipped; ``skipped`` collects skipped folders and
    hidden images.
    """
    paths = []
    skipped = [] if skipped is None else skipped
    for parent, folders, files in _walk(folder):
        images = [x for x in files if x.lower().endswith(PHOTO_SUFFIXES)]
        hidden = [x for x in folders + images if is_system(x)]
        skipped += [os.path.join(parent, name) for name in hidden]
        folders[:] = [x for x in folders if x not in hidden]
        paths += [
            os.path.join(parent, name)
            for name in files
            if name[0] != '.' and name not in ('Thumbs.db', 'desktop.ini')
        ]
    return sorted(paths)


def _walk(folder: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Walk as ``os.walk``; follow links, except those to a parent folder."""
    real_parents = {folder: {*map(str, Path(folder).resolve().parents)}}
    for parent, folders, files in os.walk(folder, followlinks=True):
        above, here = real_parents[parent], os.path.realpath(parent)
        if here in above:
            folders.clear()
            continue
        yield parent, folders, files
        below = dict.fromkeys(folders, above | {here})
        real_parents |= {os.path.join(parent, x): y for x, y in below.items()}


def _glob(pattern: str) -> list[str]:
    """Return sorted matches; ``**`` stands for any number of folders.

    ``glob.glob`` follows a link to a parent folder up to 40 times.
    """
    slash = f'[/{re.escape(os.sep)}]'  # Windows has two separators
    stars = rf'(?:^|(?<={slash}))\*\*(?:{slash}|$)'
    head, *tail = re.split(stars, pattern, maxsplit=1)
    if not tail:
        return sorted(glob.glob(pattern))
    tops = glob.glob(head) if head else ['']
    folders = [glob.escape(x) for top in tops for x in _folders_from(top)]
    return sorted(x for folder in folders for x in _glob(folder + tail[0]))


def _folders_from(top: str) -> Iterator[str]:
    """Yield a folder and its subfolders, without hidden ones, as ``**``.

    All end with ``/``; '' is the present folder.
    """
    for parent, folders, _ in _walk(top or '.'):
        folders[:] = [name for name in folders if name[0] != '.']
        yield os.path.join(parent, '')[0 if top else len('./') :]


def find_images(places: object) -> list:
    """List images in the order of the input, with duplicates.

    Args:
        places (str | Path | np.ndarray | Image | bytes | BinaryIO | Iterable):
            A path or URL; a folder, searched recursively except for hidden
            folders; a pattern such as ``'scans/*.tif'``; a BGR array, a
            Pillow image, the content of a file, a binary file; or an iterable
            of such inputs.

    Returns:
        list: Paths (str) and unchanged other images. A missing path is kept,
        to be reported as unreadable.

    Raises:
        Error: Names the type of an unsupported input.
    """
    is_flat = not hasattr(places, 'ndim') or places.ndim == 1
    is_collection = isinstance(places, Iterable) and not isinstance(
        places, Mapping | TextIOBase
    )
    if not _is_source(places) and is_flat and is_collection:
        entries = list(places)
    else:
        entries = [places]
    for i, entry in enumerate(entries):
        if not _is_source(entry):
            raise Error(
                f'image {i} has type {type(entry).__name__}; expected a path, '
                'a BGR array (H, W, 3), a Pillow image, bytes, a binary file, '
                'or a list of these'
            )
    return [image for entry in entries for image in _list_images(entry)]


def _is_source(entry) -> bool:
    """Return whether an entry is an image or a path."""
    if isinstance(entry, np.ndarray):
        return entry.dtype.kind not in 'OSU'  # not an array of paths
    is_file = hasattr(entry, 'read') and not isinstance(entry, TextIOBase)
    return is_file or isinstance(entry, _SOURCES)


def _list_images(source) -> Iterator:
    """Yield the images of an entry, see :func:`find_images`."""
    if not isinstance(source, str | os.PathLike):
        yield source
        return
    source = os.fsdecode(source)
    paths = [source]
    if not os.path.exists(source):
        paths = _glob(source) or paths
    if paths == [source] and not os.path.isdir(source):
        yield source
        return
    images = {}  # a pattern may match a folder and its images
    for path in paths:
        below = _images_below(path) if os.path.isdir(path) else (path,)
        images |= dict.fromkeys(below)
    yield from images


def _images_below(folder: str) -> list[str]:
    below = files_below(folder)
    images = [x for x in below if x.lower().endswith(PHOTO_SUFFIXES)]
    skipped = Counter(
        os.path.splitext(x)[1].lower() or 'without an extension'
        for x in {*below}.difference(images)
    )
    if skipped:
        counts = (
            f'{number} {suffix}' for suffix, number in sorted(skipped.items())
        )
        warn_once(
            f'{skipped.total()} files in {folder} are skipped because of '
            f'their file extension: {", ".join(counts)}.'
        )
    return images


def check_image(source: str | bytes | None, quick: bool = False) -> str:
    """Return why an image file is unreadable, or an empty string.

    The file is decoded by OpenCV, as in training, and by Pillow, which
    refuses truncated files that OpenCV fills up. ``quick`` accepts PNG and
    JPEG files by their header and end marker, and decodes all others.

    ``source`` is a path, the content of a file, or None (``MISSING``).
    """
    if source is None:
        return MISSING
    try:
        with (
            BytesIO(source) if isinstance(source, bytes) else open_file(source)
        ) as file:
            if quick and _looks_whole(file):
                return ''
            file.seek(0)
            content = file.read()
        _load(content)
        decode(content)
    except UndecodedError as error:
        return str(error)
    except (FileNotFoundError, NotADirectoryError):
        return MISSING
    except Exception as error:  # decoders and file systems raise many types
        return f'{type(error).__name__}: {error}'
    return ''


def check_images(paths: Iterable[str]) -> dict[str, str]:
    """Check images quickly in threads; return the problems by path."""
    with ThreadPoolExecutor(_THREADS) as pool:
        problems = pool.map(partial(check_image, quick=True), paths)
        checked = zip(paths, problems, strict=True)
        return {path: problem for path, problem in checked if problem}


def decode_whole(content: bytes, over_white: bool = True) -> np.ndarray:
    """Decode the content of a file; raise UndecodedError if truncated."""
    if not _looks_whole(BytesIO(content)):
        _load(content)
    return decode(content, over_white)


def _looks_whole(file: BinaryIO) -> bool:
    try:
        marker = _END_MARKERS.get(open_image(file).format or '', b'')
    except UndecodedError:
        return False
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - _TAIL, 0))
    return bool(marker) and file.read().rstrip(b'\0').endswith(marker)


def _load(content: bytes) -> None:
    """Decode an image with Pillow, which refuses truncated files."""
    if not content:
        raise UndecodedError(EMPTY)
    file = BytesIO(content)
    with open_image(file) as image:
        # Pillow accepts zeros after a cut, so search from the first scan
        if image.format == 'JPEG' and _JPEG_END not in file.read():
            raise UndecodedError('truncated JPEG: the end marker is missing')
        if image.format not in BY_PILLOW:
            try:
                with reserved(image):
                    image.load()
            except Exception as error:  # decoders raise many types
                error_type = type(error).__name__
                raise UndecodedError(f'{error_type}: {error}') from error
