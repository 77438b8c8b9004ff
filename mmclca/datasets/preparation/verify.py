# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Open every image of a set, and count."""

import sys
from typing import NamedTuple

from mmengine.utils import track_parallel_progress, track_progress

from ..image_files import MISSING, find_problem
from ..ultra_fgvc.info import SETS, plain
from ..ultra_fgvc.lists import divide, natural, read_source
from ..ultra_fgvc.places import find_sources


class Row(NamedTuple):
    """A line of the table: one split of one set in one layout.

    ``expected`` holds the class and the image count of the table of sets;
    the latter is None where none is published.
    """

    dataset: str
    layout: str
    split: str
    classes: int
    images: int
    expected: tuple
    missing: int
    unreadable: int

    @property
    def good(self):
        """bool: Whether nothing is wrong with it."""
        classes, images = self.expected
        counted = self.classes == classes and images in (None, self.images)
        return counted and not self.missing and not self.unreadable


class Bad(NamedTuple):
    """An image, or a whole list, with something wrong."""

    dataset: str
    layout: str
    split: str
    path: str
    problem: str


def find_sets(folder, info=None):
    """Find all sets in a folder, in all layouts.

    A place is taken for the set whose name it has; else for the one with as
    many classes.

    Args:
        folder (str | Path): Where to look.
        info (UltraFGVCInfo, optional): Look for this set only, and take a
            place without a name for it. Defaults to None.

    Returns:
        list[tuple[UltraFGVCInfo, Source]]: What was found.
    """
    if info is not None:
        return [(info, source) for source in find_sources(folder, info)]
    found = [
        (info, source)
        for info in SETS.values()
        for source in find_sources(folder, info)
        if _is_named_so(source) or _has_its_classes(source, info)
    ]
    wholes = {(i.name, s.layout) for i, s in found}
    return [
        (info, source)
        for info, source in found
        if len(info.stages) != 1 or ('soyageing', source.layout) not in wholes
    ]


def _is_named_so(source):
    return all(
        plain(root.name) in (*part.folders, plain(part.parquet))
        for part, root in source.roots
    )


def _has_its_classes(source, info):
    try:
        images = read_source(source, info)
    except ValueError:
        return False
    stages = {image.stage for image in images} - {''}
    classes = {image.class_name for image in images}
    return len(classes) == info.num_classes and stages == set(info.stages)


def verify(source, info, jobs=1):
    """Open every image of a set.

    Args:
        source (Source): Where it is.
        info (UltraFGVCInfo): The set.
        jobs (int): Processes that open images. Defaults to 1.

    Returns:
        tuple[list[Row], list[Bad]]: A row a split, and all that is wrong.
    """
    try:
        images = read_source(source, info)
        splits = divide(images, info)
    except ValueError as error:
        return [], [_bad_list(source, info, '', str(error))]
    bad = [
        _bad_list(source, info, split, 'no image is listed for this split')
        for split in ('trainval', 'test')
        if split not in splits
    ]
    if 'train' in splits and 'val' in splits:
        del splits['trainval']
    problems = _problems(sum(splits.values(), []), jobs)
    rows = [
        _row(split, listed, problems, source, info)
        for split, listed in splits.items()
    ]
    bad += [
        Bad(info.title, source.layout, split, image.path, problems[image.path])
        for split, listed in splits.items()
        for image in listed
        if image.path in problems
    ]
    return rows, bad


def _bad_list(source, info, split, problem):
    place = str(source.roots[0][1])
    return Bad(info.title, source.layout, split, place, problem)


def _row(split, images, problems, source, info):
    found = [problems[i.path] for i in images if i.path in problems]
    return Row(
        info.title,
        source.layout,
        split,
        len({image.class_name for image in images}),
        len(images),
        (info.num_classes, info.counts.get(split)),
        found.count(MISSING),
        len(found) - found.count(MISSING),
    )


def _problems(images, jobs):
    """Map the path of each bad image to what is wrong with it."""
    # In the order of the files, so that a row group is read once.
    paths = sorted({image.path for image in images}, key=natural)
    return find_problems(paths, jobs, sys.stderr)


def find_problems(paths, jobs, file=None):
    """Open images, with a progress bar.

    Args:
        paths (Sequence[str]): Files.
        jobs (int): Processes that open them.
        file (TextIO): Where the bar is shown. Defaults to standard output.

    Returns:
        dict[str, str]: What is wrong with each that cannot be read.
    """
    problems = zip(paths, track(find_problem, paths, jobs, file), strict=True)
    return {path: problem for path, problem in problems if problem}


def track(function, items, jobs, file=None):
    """Call a function, which can be pickled, for each item, with a bar."""
    file = file or sys.stdout
    if jobs == 1:
        return track_progress(function, items, file=file)
    return track_parallel_progress(
        function, items, jobs, chunksize=16, file=file
    )
