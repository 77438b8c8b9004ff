# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Image files: their endings, and whether they can be read."""

import glob
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from io import BytesIO, TextIOBase

import numpy as np
from PIL import Image

from mmclca.utils.files import open_file
from mmclca.utils.image_suffixes import IMAGE_SUFFIXES as IMAGE_SUFFIXES
from mmclca.utils.image_suffixes import PHOTOGRAPH_SUFFIXES

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
# Reading headers waits for the disk or the network, not for the CPU.
_THREADS = 16
_JPEG_END = b'\xff\xd9'
_END_MARKERS = dict(PNG=b'IEND\xaeB`\x82', JPEG=_JPEG_END, MPO=_JPEG_END)
_TAIL = 4096


# folders that operating systems, storage devices and programs add
_SYSTEM = re.compile(
    r'\..*|__macosx|__pycache__|_?thumb(nail)?s|\$?recycle([rd]|[._ ]?bin)'
    r'|lost\+found|lost\.dir|found\.\d+|dfsrprivate|system volume information'
    r'|network trash folder|temporary items|trashbox|.*\.lrdata|\$extend'
    r'|@(__thumb|eadir|recently-snapshot|recycle|sharebin|snaps?|syno[^.]*|tmp)'
    r'|[#~](recycle|snapshots?)',
    re.IGNORECASE,
)


def is_system(name: str) -> bool:
    """Return whether a name is hidden, or a folder that no person made."""
    return bool(_SYSTEM.fullmatch(name))


def files_below(folder, skipped=None):
    """Find the files in a folder and in all folders below.

    Links are followed. Hidden files and folders are skipped, and so are the
    folders that operating systems and storage devices add.

    Args:
        folder (str): The folder.
        skipped (list[str], optional): Gets the paths of skipped folders and
            hidden images. Defaults to None.

    Returns:
        list[str]: Their paths, which begin with ``folder``, sorted.
    """
    paths, seen = [], set()
    skipped = [] if skipped is None else skipped
    for place, folders, files in os.walk(folder, followlinks=True):
        here = os.path.realpath(place)
        if here in seen:  # a link to a folder above it
            folders.clear()
            continue
        seen.add(here)
        images = [x for x in files if x.lower().endswith(PHOTOGRAPH_SUFFIXES)]
        hidden = [x for x in folders + images if is_system(x)]
        skipped += [os.path.join(place, name) for name in hidden]
        folders[:] = [x for x in folders if x not in hidden]
        paths += [os.path.join(place, name) for name in files if _shown(name)]
    return sorted(paths)


def _shown(name):
    return name[0] != '.' and name not in ('Thumbs.db', 'desktop.ini')


def find_images(places) -> list:
    """Find images, in the order of the input.

    Args:
        places (str | Path | np.ndarray | Image | bytes | BinaryIO | Iterable):
            Paths and URLs; folders, searched recursively except for hidden
            folders; patterns such as ``'scans/*.tif'``; BGR arrays, Pillow
            images or the content of a file; binary files; or an iterable of
            these. Duplicates are kept.

    Returns:
        list: Paths (str), and the other images unchanged. A missing path is
        kept, to be reported as unreadable.

    Raises:
        ValueError: Names the type of an unsupported input.
    """
    if not _is_source(places) and _is_listed(places):
        entries = list(places)
    else:
        entries = [places]
    for i, entry in enumerate(entries):
        if not _is_source(entry):
            raise ValueError(
                f'image {i} has type {type(entry).__name__}; expected a path, '
                'a BGR array (H, W, 3), a Pillow image, bytes, a binary file, '
                'or a list of these'
            )
    return [image for entry in entries for image in _images_at(entry)]


def _is_source(entry) -> bool:
    """Tell whether an entry is an image, or a place of images."""
    if isinstance(entry, np.ndarray):
        return entry.dtype.kind not in 'OSU'  # else it holds paths
    is_file = hasattr(entry, 'read') and not isinstance(entry, TextIOBase)
    return is_file or isinstance(entry, _SOURCES)


def _is_listed(places) -> bool:
    """Tell whether something holds entries, as lists, sets and series do."""
    other = isinstance(places, Mapping | TextIOBase)
    is_flat = not hasattr(places, 'ndim') or places.ndim == 1
    return isinstance(places, Iterable) and is_flat and not other


def _images_at(place) -> Iterator:
    if not isinstance(place, str | os.PathLike):
        yield place
        return
    place = os.fsdecode(place)
    found = [place]
    if not os.path.exists(place):
        found = sorted(glob.glob(place, recursive=True)) or found
    if found == [place] and not os.path.isdir(place):
        yield place
        return
    images = {}  # also of links, of which the first counts
    for path in found:
        for image in _images_below(path) if os.path.isdir(path) else (path,):
            images.setdefault(os.path.realpath(image), image)
    yield from images.values()


def _images_below(folder: str) -> list[str]:
    below = files_below(folder)
    found = [x for x in below if x.lower().endswith(PHOTOGRAPH_SUFFIXES)]
    others = Counter(
        os.path.splitext(x)[1].lower() or 'without an extension'
        for x in {*below}.difference(found)
    )
    if others:
        counts = (
            f'{number} {kind}' for kind, number in sorted(others.items())
        )
        warn_once(
            f'{others.total()} files in {folder} are skipped because of their '
            f'file extension: {", ".join(counts)}.'
        )
    return found


def find_problem(source: str | bytes | None, quick: bool = False) -> str:
    """Decode a file or its content, as strictly as Pillow and training do.

    OpenCV, which :func:`~mmclca.datasets.decoding.decode` uses, fills up a
    truncated file in silence; Pillow refuses it.

    Args:
        source (str | bytes, optional): Path or content of the file; None for
            a missing one.
        quick (bool): Whether a PNG or JPEG file counts as whole if Pillow
            recognizes its header and it ends as it must, save for padding
            with zeros. Anything else is decoded: rare formats, and files with
            other ends, which may still be fine. Defaults to False.

    Returns:
        str: The problem: ``MISSING``, ``EMPTY`` or the message of the
        decoder; empty if there is none.
    """
    if source is None:
        return MISSING
    is_content = isinstance(source, bytes)
    try:
        with BytesIO(source) if is_content else open_file(source) as file:
            if quick and _looks_whole(file):
                return ''
            file.seek(0)
            content = file.read()
        _check_whole(content)
        decode(content)
    except UndecodedError as error:
        return str(error)
    except Exception as error:  # decoders and file systems may raise anything
        return _reason(error)
    return ''


def decode_whole(content, over_white=True):
    """Decode an image, if all of it is there.

    Returns:
        np.ndarray: BGR image (H, W, 3), uint8.

    Raises:
        ValueError: What :func:`find_problem` returns.
    """
    if not _looks_whole(BytesIO(content)):
        _check_whole(content)
    return decode(content, over_white)


def check_headers(paths):
    """Find images that cannot be read, by a quick :func:`find_problem` each.

    Returns:
        dict[str, str]: The problem of each that cannot be read.
    """
    with ThreadPoolExecutor(_THREADS) as pool:
        problems = pool.map(partial(find_problem, quick=True), paths)
        found = zip(paths, problems, strict=True)
        return {path: problem for path, problem in found if problem}


def _looks_whole(file):
    try:
        marker = _END_MARKERS.get(open_image(file).format)
    except UndecodedError:
        return False
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - _TAIL, 0))
    return bool(marker) and file.read().rstrip(b'\0').endswith(marker)


def _check_whole(content):
    """Decode an image with Pillow, which refuses truncated files."""
    if not content:
        raise UndecodedError(EMPTY)
    file = BytesIO(content)
    with open_image(file) as image:
        # Search from the first scan; Pillow accepts zeros after a cut.
        if image.format == 'JPEG' and _JPEG_END not in file.read():
            raise UndecodedError('truncated JPEG: the end marker is missing')
        if image.format not in BY_PILLOW:
            try:
                with reserved(image):
                    image.load()
            except Exception as error:  # a decoder may raise anything
                raise UndecodedError(_reason(error)) from error


def _reason(error):
    if isinstance(error, (FileNotFoundError, NotADirectoryError)):
        return MISSING
    return f'{type(error).__name__}: {error}'
