# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Splits, classes and labels of an Ultra-FGVC dataset, with their checks."""

import re
from collections import Counter

from mmclca.errors import Error

from ..image_files import MISSING
from .info import VAL_STAGE, LeafImage


def join_parts(images, parts, info) -> list[LeafImage]:
    """Join images from all parts; skip other stages, name classes from 1.

    Raises:
        Error: If a class has two labels or a label two classes.
    """
    listed = []
    for some, part in zip(images, parts, strict=True):
        if len(part.stages) == 1:
            (stage,) = part.stages
            some = [i._replace(stage=i.stage or stage) for i in some]
            some = [i for i in some if i.stage == stage]
        _check_one_to_one(some, part)
        listed += some
    names = {image.class_name for image in listed}
    if not (info.numbered and '0' in names and all_numbers(names)):
        return listed
    # folders and parquet files may count from 0
    return [
        image._replace(class_name=str(int(image.class_name) + 1))
        for image in listed
    ]


def _check_one_to_one(images, info) -> None:
    pairs = sorted({(image.given, image.class_name) for image in images})
    given = Counter(label for label, _ in pairs)
    named = Counter(name for _, name in pairs)
    bad = [pair for pair in pairs if given[pair[0]] + named[pair[1]] > 2]
    if bad:
        raise Error(
            f'{info.title}: labels (or folders) contradict the classes in the '
            'file names: '
            + '; '.join(f'{label} is class {name}' for label, name in bad[:5])
        )


def divide(images, info) -> dict[str, list[LeafImage]]:
    """Return the images of each non-empty split.

    Publishers divide the training list differently. A train list with the
    length of ``trainval`` is used as ``trainval``; ``train`` and ``val``
    then exist only if it contains the val list. For all of SoyAgeing,
    ``val`` is stage R6, as in the lists of the CLCA authors.

    Raises:
        Error: If an image is in both the training and the test list.
    """
    train, val, whole, test = (
        [image for image in images if image.split == split]
        for split in ('train', 'val', 'trainval', 'test')
    )
    if not whole and len(train) == info.counts.get('trainval'):
        whole, train, val = train, *_without_val(train, val)
    whole = whole or [*{image.path: image for image in train + val}.values()]
    both = {image.path for image in whole} & {image.path for image in test}
    if both:
        raise Error(
            f'{info.title}: the training and test lists share {len(both)} '
            f'images, such as {", ".join(sorted(both)[:3])}'
        )
    if len(info.stages) > 1:
        train = [image for image in whole if image.stage != VAL_STAGE]
        val = [image for image in whole if image.stage == VAL_STAGE]
    # a val list alone, such as R6, is not used
    val = val if train else []
    splits = dict(train=train, val=val, trainval=whole, test=test)
    return {name: listed for name, listed in splits.items() if listed}


def _without_val(train, val) -> tuple[list, list]:
    """Separate a train list from the val list that it contains."""
    paths = {image.path for image in val}
    part = [image for image in train if image.path in paths]
    rest = [image for image in train if image.path not in paths]
    return (rest, part) if part and len(part) == len(val) else ([], [])


def check_split(splits, wanted, info, found, counts=True) -> None:
    """Raise if a split is missing or, with ``counts``, incomplete.

    Raises:
        Error: Names the counts found and expected.
    """
    sizes = {split: len(listed) for split, listed in splits.items()}
    classes = len({image.class_name for image in found.images})
    known = info.counts.get(wanted, sizes.get(wanted))
    whole = (classes, sizes.get(wanted)) == (info.num_classes, known)
    if wanted not in splits or counts and not whole:
        raise Error(
            f'{info.title}, split {wanted!r}, in {found} is incomplete: found '
            f'{classes} classes and {sizes} images, expected '
            f'{info.num_classes} classes and {info.counts} images; to use a '
            'part of the dataset, set check_counts=False in the config, or '
            'import with --partial'
        )


def refuse_unreadable(problems, info, advice='', most=None) -> None:
    """Raise if images have problems; list the first ``most``.

    Raises:
        FileNotFoundError: If an image is missing.
        Error: If all bad images exist.
    """
    if not problems:
        return
    lines = [f'\n  {path}: {why}' for path, why in problems.items()]
    more = ['\n  ...'] * (len(lines) > len(lines[:most]))
    missing = [*problems.values()].count(MISSING)
    error = FileNotFoundError if missing else Error
    raise error(
        f'{info.title}: {len(problems)} images cannot be read, '
        f'{missing} of them missing:{"".join(lines[:most] + more)}{advice}'
    )


def class_names(images, info, classes=None) -> tuple[str, ...]:
    """Sort the classes of a dataset by number or name.

    Labels then equal ``class_id`` of the CLCA authors in every form.
    ``classes`` overrides the order, such as for a part of the dataset.

    Raises:
        Error: If ``classes`` does not contain the class of an image.
    """
    found = {image.class_name for image in images}
    if classes is None and info.numbered:
        classes = [str(i + 1) for i in range(info.num_classes)]
    if classes is None:
        classes = sorted(found, key=int if all_numbers(found) else str)
    unknown = sorted(found - set(classes), key=natural)
    if unknown:
        raise Error(
            f'{info.title}: {len(unknown)} classes of the images are not in '
            f'the list of {len(classes)} classes '
            f'({classes[0]}..{classes[-1]}): ' + ', '.join(unknown[:5])
        )
    return tuple(classes)


def label(images, classes) -> list[LeafImage]:
    """Add labels to images, and sort them by label and file name."""
    labels = {name: i for i, name in enumerate(classes)}
    labeled = [i._replace(label=labels[i.class_name]) for i in images]
    return sorted(labeled, key=lambda i: (i.label, natural(i.file_name)))


def natural(name: str) -> list:
    """Sort key with 2 before 10."""
    return [int(s) if s.isdecimal() else s for s in re.split(r'(\d+)', name)]


def all_numbers(names) -> bool:
    """Return whether all names are integers."""
    return all(name.isdecimal() for name in names)
