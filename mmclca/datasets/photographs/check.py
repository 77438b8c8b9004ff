# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Check photos: unreadable files, duplicates and label conflicts."""

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from io import BytesIO
from itertools import pairwise
from math import ceil, floor

import numpy as np
from PIL import Image, ImageOps

from mmclca.utils.files import read_bytes
from mmclca.utils.messages import first_of, track

from ..decoding import by_pillow, decode, open_image, reserved
from ..image_files import find_problem
from .labeled_images import LabeledImages
from .spellings import look

_some = partial(first_of, most=3, between='; ')
# of the same picture in several splits, which one is kept
_RANKS = {'test': 0, 'val': 1, 'train': 2, '': 2}
_THREADS = 8  # decoders leave the interpreter to the others
_SIDE = 16  # of the small pictures that are compared
# A picture that was saved in another format stays within this when it is made
# small. Others seldom do, and then it costs decoding both.
_TOLERANCE = 4
# what Pillow makes small though it is cut short, or no picture to OpenCV
_LENIENT = 'JPEG', 'MPO'
_NO_COLOURS = 'F', 'I'


@dataclass
class Checked:
    """Photographs that can be used, and what became of the others.

    Args:
        photographs (LabeledImages): What is used.
        unread (dict[str, str]): By path why one cannot be read.
        doubled (list[tuple[str, str]]): Left out, and the one that is kept,
            of the same picture, class and split.
        conflicts (list[tuple[str, ...]]): The same picture in several
            classes; none of these is used.
        leaks (list[tuple[str, str]]): Left out, and the one that is kept for
            validation or a test, which shows the same.
        untrained (dict[str, int]): Classes of which nothing is left to train
            with, and their photographs, which are left out.
        digests (dict[str, str]): SHA-256 of the files that were read, by path.
        unopened (dict[str, str]): SHA-256 of files that must not be opened,
            by path.
    """

    photographs: LabeledImages
    unread: dict[str, str]
    doubled: list[tuple[str, str]]
    conflicts: list[tuple[str, ...]]
    leaks: list[tuple[str, str]]
    untrained: dict[str, int]
    digests: dict[str, str] = field(default_factory=dict)
    unopened: dict[str, str] = field(default_factory=dict)

    @property
    def single(self) -> list[str]:
        """Classes with one photo to train with."""
        found = self.photographs
        counts = found.select(found.to_train()).counts()
        return [name for name, n in counts.items() if n == 1]

    @property
    def alike(self) -> list[tuple[str, ...]]:
        """Class names that differ only in capitals, spaces or characters that
        look the same."""
        names = {name: look(name) for name in self.photographs.classes}
        return [(*x,) for x in keys_by(names).values() if len(x) > 1]

    @property
    def split_groups(self) -> list[str]:
        """Groups in training that are also in validation or test."""
        found = self.photographs
        trained = found.select(found.to_train())
        others = found.without({*trained.paths})
        return sorted({*(trained.groups or ())} & {*(others.groups or ())})

    def lines(self) -> list[str]:
        """Describe the problems, one line each, each with a label."""
        return list(_lines_of(self))


def check_photographs(
    photographs: LabeledImages, unopened: dict[str, str] | None = None
) -> Checked:
    """Open photos, and skip unreadable files, duplicates and conflicts.

    Args:
        photographs (LabeledImages): All photos.
        unopened (dict[str, str], optional): SHA-256 by path of files that
            were checked before and are not opened. Defaults to None.

    Returns:
        Checked: The usable photos. Labels are renumbered if a class is
        skipped.

    Raises:
        ValueError: If fewer than two classes have training photos.
    """
    unopened = unopened or {}
    looks = {
        path: ImageSummary('', digest) for path, digest in unopened.items()
    }
    new = [path for path in photographs.paths if path not in unopened]
    looks |= summarize_images(new)
    unread = {path: x.problem for path, x in looks.items() if x.problem}
    read = {path: x for path, x in looks.items() if not x.problem}
    doubled, conflicts, leaks = _compare(photographs, same_pictures(read))
    out = {*unread, *dict(doubled + leaks)}.union(*conflicts)
    used, untrained = _trainable(photographs.without(out))
    checked = Checked(
        *(used, unread, doubled, conflicts, leaks, untrained),
        digests={path: x.digest for path, x in read.items()},
        unopened=unopened,
    )
    if len(used.classes) < 2:
        found = '; '.join(checked.lines())
        raise ValueError(
            f'{photographs.source}: at least two classes with training photos '
            f'are needed, found {len(used.classes)} of '
            f'{len(photographs.classes)} ({found})'
        )
    return checked


def _compare(photographs: LabeledImages, pictures: list[list[str]]):
    """Return the files to leave out of those that show the same."""
    facts = zip(photographs.labels, photographs.splits, strict=True)
    facts = dict(zip(photographs.paths, facts, strict=True))
    doubled, conflicts, leaks = [], [], []
    for paths in pictures:
        if len({facts[path][0] for path in paths}) > 1:
            conflicts.append(tuple(paths))
            continue
        kept = min(paths, key=lambda path: _RANKS[facts[path][1]])
        for path in paths:
            if path != kept:
                same = facts[path] == facts[kept]
                (doubled if same else leaks).append((path, kept))
    return doubled, conflicts, leaks


def _trainable(
    photographs: LabeledImages,
) -> tuple[LabeledImages, dict[str, int]]:
    """Return photographs of trainable classes, and how many others there
    are."""
    trained = {photographs.labels[i] for i in photographs.to_train()}
    names = {photographs.classes[label] for label in trained}
    counts = photographs.counts().items()
    untrained = {x: n for x, n in counts if x not in names}
    return photographs.of_classes(sorted(trained)), untrained


def _lines_of(checked: Checked) -> Iterator[str]:
    """Describe skipped photos and possible problems, one line each."""
    source = checked.photographs.source
    folder = source if os.path.isdir(source) else os.path.dirname(source)

    def short(path: str) -> str:
        path = os.path.relpath(path, folder)
        return os.fsencode(path).decode(errors='replace')

    yield from (f'Warning: {note}' for note in checked.photographs.notes)
    for reason, paths in keys_by(checked.photographs.left_out).items():
        files = f'{len(paths)} file{"s" * (len(paths) != 1)}'
        yield f'Skipped: {files} {reason} ({_some(map(short, paths))})'
    problems = {
        'Skipped: {} system folder{s} or hidden image{s}': map(
            short, sorted(checked.photographs.skipped)
        ),
        'Skipped: {} unreadable': (
            f'{short(p)}: {why}' for p, why in checked.unread.items()
        ),
        'Skipped: {} duplicate{s}, used once': (
            f'{short(p)} = {short(kept)}' for p, kept in checked.doubled
        ),
        'Skipped: {} photo{s} in several classes': (
            ' = '.join(map(short, paths)) for paths in checked.conflicts
        ),
        'Skipped: {} also in val or test, so not used for training': (
            f'{short(p)} = {short(kept)}' for p, kept in checked.leaks
        ),
        'Skipped: {} class{es} without training photos': (
            f'{name}, {n} in val or test'
            for name, n in checked.untrained.items()
        ),
        'Warning: {} case{s} of nearly equal class names': map(
            ' = '.join, checked.alike
        ),
        'Warning: {} group{s} in both train and val or test': (
            checked.split_groups
        ),
        'Untested: {} class{es} with one photo, used for training only': (
            checked.single
        ),
    }
    for problem, found in problems.items():
        names = [*found]
        forms = dict(s='', es='') if len(names) == 1 else dict(s='s', es='es')
        if names:
            yield f'{problem.format(len(names), **forms)} ({_some(names)})'


@dataclass
class ImageSummary:
    """The size and hashes of an image file."""

    problem: str
    digest: str = ''
    size: tuple[int, int] = (0, 0)
    small: np.ndarray | None = None


def summarize_images(paths: Sequence[str]) -> dict[str, ImageSummary]:
    """Read size and hashes of files in several threads.

    JPEG files are decoded at an eighth of their size, which is faster.

    Args:
        paths (Sequence[str]): The files.
    """
    with ThreadPoolExecutor(_THREADS) as pool:
        looks = track(pool.map(_look, paths), 'Checking photos', len(paths))
        return dict(zip(paths, looks, strict=True))


def same_pictures(looks: dict[str, ImageSummary]) -> list[list[str]]:
    """Find files with the same bytes, or the same pixels once decoded.

    Returns:
        list[list[str]]: Two or more paths each, in the order of ``looks``.
    """
    copies = keys_by({path: look.digest for path, look in looks.items()})
    first = {
        paths[0]: looks[paths[0]].size
        for paths in copies.values()
        if looks[paths[0]].small is not None
    }
    close = [
        path
        for paths in keys_by(first).values()
        for path in _close(paths, looks)
    ]
    with ThreadPoolExecutor(_THREADS) as pool:
        pixels = dict(zip(close, pool.map(_digest_pixels, close), strict=True))
    pictures = {
        path: pixels.get(copies[look.digest][0], look.digest)
        for path, look in looks.items()
    }
    return [paths for paths in keys_by(pictures).values() if len(paths) > 1]


def _look(path: str) -> ImageSummary:
    problem = _problem_of_name(path)
    if problem:
        return ImageSummary(problem)
    try:
        content = read_bytes(path)
        size, small = _small(content)
    except Exception as error:  # a decoder may raise anything
        problem = find_problem(path, quick=True)
        return ImageSummary(problem or f'{type(error).__name__}: {error}')
    return ImageSummary('', sha256(content).hexdigest(), size, small)


def _small(content: bytes) -> tuple[tuple[int, int], np.ndarray]:
    """Size and small picture of a file.

    Raises:
        Exception: What the decoder raises where it is no image, or not whole.
    """
    with open_image(BytesIO(content)) as image:
        size = tuple(sorted(image.size))
        if image.format in _LENIENT or image.mode in _NO_COLOURS:
            problem = find_problem(content, quick=True)
            if problem:
                raise ValueError(problem)
        with reserved(image, draft=('RGB', (8 * _SIDE, 8 * _SIDE))):
            ImageOps.exif_transpose(image, in_place=True)
            return size, _shrunk(image)


def _shrunk(image: Image.Image) -> np.ndarray:
    """Resize an image to ``_SIDE`` x ``_SIDE``, row by row to save memory."""
    width, height = image.size
    rows = []
    for ends in pairwise(np.linspace(0, height, _SIDE + 1).tolist()):
        first, last = floor(ends[0]), ceil(ends[1])
        band = image.crop((0, first, width, last)).convert('RGB')
        box = 0, ends[0] - first, width, ends[1] - first
        small = band.resize((_SIDE, 1), Image.Resampling.BOX, box)
        rows.append(np.asarray(small))
    return np.stack(rows).reshape(-1)


def _problem_of_name(path: str) -> str:
    """Reason why a path cannot be a line of a list, or an empty text."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return 'file name is not UTF-8; rename it'
    breaks = any(character in path for character in '\n\r')
    return 'file name has a line break; rename it' * breaks


def keys_by(values: dict) -> dict:
    """Return the keys that have each value."""
    keys = defaultdict(list)
    for key, value in values.items():
        keys[value].append(key)
    return keys


def _close(paths: list[str], looks: dict[str, ImageSummary]) -> list[str]:
    """Return the files that are much like another one."""
    small = np.stack([looks[path].small for path in paths]).astype(np.int16)
    means = small.mean(1)
    order = means.argsort()
    ends = np.searchsorted(means[order], means[order] + _TOLERANCE, 'right')
    close = set()
    for i, end in enumerate(ends):
        near = order[i + 1 : end]
        for step in (64, 1):  # most differ in the first few values
            away = small[near, ::step] - small[order[i], ::step]
            near = near[np.abs(away).max(1) <= _TOLERANCE]
        close |= {*near, order[i]} if len(near) else set()
    return [paths[i] for i in sorted(close)]


def _digest_pixels(path: str) -> str:
    content = read_bytes(path)
    # OpenCV's JPEG decoder rounds in another way than that of most programs
    is_jpeg = content.startswith(b'\xff\xd8')
    with open_image(BytesIO(content)) as opened, reserved(opened):
        image = by_pillow(content) if is_jpeg else decode(content)
        digest = sha256(repr(image.shape).encode())
        digest.update(image)
        return digest.hexdigest()
