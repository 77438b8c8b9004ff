# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Find image files that are unreadable or copies of others."""

from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from hashlib import sha256
from io import BytesIO
from itertools import pairwise
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
from .captures import Capture, read_exif

_THREADS = 8  # decoders release the interpreter lock
_SIDE = 16  # pixels per side of the thumbnails for comparison
# Thumbnails of copies in several formats differ less than this. Other pairs
# seldom do; decoding both is then the only cost.
_TOLERANCE = 4
# Pillow shrinks truncated JPEG files without an error
_LENIENT = 'JPEG', 'MPO'
_NO_COLORS = 'F', 'I'


@dataclass
class ImageSummary:
    """Size, SHA-256 and thumbnail of an image file, or its problem.

    ``size`` starts with the shorter side, to ignore rotation by EXIF.
    ``thumbnail`` is flat, uint8; None if not read. ``capture`` is that in the
    EXIF data.
    """

    problem: str
    digest: str = ''
    size: tuple[int, int] = (0, 0)
    thumbnail: np.ndarray | None = None
    capture: Capture = Capture()


def summarize_images(paths: Sequence[str]) -> dict[str, ImageSummary]:
    """Summarize image files in several threads; JPEG at reduced size."""
    with ThreadPoolExecutor(_THREADS) as pool:
        summaries = track(
            pool.map(_summarize, paths), 'Checking photos', len(paths)
        )
        return dict(zip(paths, summaries, strict=True))


def find_copies(summaries: dict[str, ImageSummary]) -> list[list[str]]:
    """Group files with equal bytes or pixels, in the order of the summaries.

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
        for path in _select_similar(paths, summaries)
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
    try:
        path.encode()
    except UnicodeEncodeError:  # a list cannot contain the path
        return ImageSummary('file name is not UTF-8; rename it')
    if '\n' in path or '\r' in path:
        return ImageSummary('file name has a line break; rename it')
    try:
        content = read_bytes(path)
        summary = _summarize_content(content)
    except Exception as error:  # decoders raise many types
        problem = check_image(path, quick=True)
        return ImageSummary(problem or f'{type(error).__name__}: {error}')
    return replace(summary, digest=sha256(content).hexdigest())


def _summarize_content(content: bytes) -> ImageSummary:
    """Return size, thumbnail and EXIF capture of an image.

    Raises an error of any type if the image is unreadable.
    """
    with open_image(BytesIO(content)) as image:
        size = min(image.size), max(image.size)
        if image.format in _LENIENT or image.mode in _NO_COLORS:
            problem = check_image(content, quick=True)
            if problem:
                raise Error(problem)
        with reserved(image, draft=('RGB', (8 * _SIDE, 8 * _SIDE))):
            ImageOps.exif_transpose(image, in_place=True)
            capture = read_exif(image)  # decodes some formats
            thumbnail = _thumbnail(image)
    return ImageSummary('', '', size, thumbnail, capture)


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


def keys_by(values: dict) -> dict:
    """Group the keys of a dict by value."""
    keys = defaultdict(list)
    for key, value in values.items():
        keys[value].append(key)
    return keys


def _select_similar(
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
        digest.update(image.data)
        return digest.hexdigest()
