# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Check splits, classes and labels in an Ultra-FGVC dataset."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from mmclca.errors import Error

from ..image_files import MISSING
from .info import VAL_STAGE, UltraFGVCInfo
from .layouts import LeafImage

Splits = dict[str, list[LeafImage]]


def read_part(
    folder: Path,
    info: UltraFGVCInfo,
    read: Callable[[Path, UltraFGVCInfo], list[LeafImage]],
) -> list[LeafImage]:
    """Read a dataset or one stage, without images of other stages.

    Args:
        folder (Path): Folder of the dataset.
        info (UltraFGVCInfo): The dataset or stage.
        read (Callable): Reader of a layout.

    Raises:
        Error: If the lists are invalid.
    """
    images = read(folder, info)
    if len(info.stages) == 1:
        (stage,) = info.stages
        images = [x for x in images if (x.stage or stage) == stage]
        images = [replace(image, stage=stage) for image in images]
    check_one_to_one(images, info)
    return images


def check_one_to_one(images: Sequence[LeafImage], info: UltraFGVCInfo) -> None:
    """Raise if a class has two labels or a label two classes.

    Raises:
        Error: Names the first contradictions.
    """
    pairs = sorted({(x.listed_label, x.class_name) for x in images})
    labels = Counter(label for label, _ in pairs)
    names = Counter(name for _, name in pairs)
    wrong = [
        f'{label} is class {name}'
        for label, name in pairs
        if labels[label] + names[name] > 2
    ]
    if wrong:
        raise Error(
            f'{info.title}: labels (or folders) contradict the classes in the '
            f'file names: {"; ".join(wrong[:5])}'
        )


def divide(images: Sequence[LeafImage], info: UltraFGVCInfo) -> Splits:
    """Return images per non-empty split.

    Publishers divide the training list differently. A train list with the
    length of ``trainval`` is used as ``trainval``; ``train`` and ``val``
    then exist only if it contains the val list. For all of SoyAgeing,
    ``val`` is stage R6, as in the lists of the CLCA authors.

    Raises:
        Error: If an image is in both the training and the test list.
    """
    train, val, trainval, test = (
        [image for image in images if image.split == split]
        for split in ('train', 'val', 'trainval', 'test')
    )
    if not trainval and len(train) == info.counts.get('trainval'):
        trainval, train = train, []
        paths = {image.path for image in val}
        if paths and paths <= {image.path for image in trainval}:
            train = [image for image in trainval if image.path not in paths]
    if not trainval:
        trainval = [*{image.path: image for image in train + val}.values()]
    both = {image.path for image in trainval} & {image.path for image in test}
    if both:
        raise Error(
            f'{info.title}: the training and test lists share {len(both)} '
            f'images, such as {", ".join(sorted(both)[:3])}'
        )
    if len(info.stages) > 1:
        train = [image for image in trainval if image.stage != VAL_STAGE]
        val = [image for image in trainval if image.stage == VAL_STAGE]
    # a val list alone, such as R6, is not used
    val = val if train else []
    splits = dict(train=train, val=val, trainval=trainval, test=test)
    return {split: in_split for split, in_split in splits.items() if in_split}


def check_split(
    splits: Splits,
    split: str,
    info: UltraFGVCInfo,
    advice: str,
    complete: bool = True,
) -> None:
    """Raise if a split is missing or, with ``complete``, a part.

    Raises:
        Error: Names the counts found and expected, and ``advice``.
    """
    sizes = {name: len(images) for name, images in splits.items()}
    names = {x.class_name for images in splits.values() for x in images}
    expected = info.counts.get(split, sizes.get(split))
    is_complete = len(names) == info.num_classes and (
        sizes.get(split) == expected
    )
    if split not in splits or complete and not is_complete:
        raise Error(
            f'{info.title}, split {split!r}, is incomplete: found '
            f'{len(names)} classes and {sizes} images, expected '
            f'{info.num_classes} classes and {info.counts} images; {advice}'
        )


def refuse_unreadable(
    problems: dict[str, str], info: UltraFGVCInfo, limit: int | None = None
) -> None:
    """Raise if images have problems; list the first ``limit``.

    Raises:
        FileNotFoundError: If an image is missing.
        Error: If all bad images exist.
    """
    if not problems:
        return
    lines = [f'\n  {path}: {problem}' for path, problem in problems.items()]
    if limit is not None and len(lines) > limit:
        lines[limit:] = ['\n  ...']
    missing = [*problems.values()].count(MISSING)
    error = FileNotFoundError if missing else Error
    raise error(
        f'{info.title}: {len(problems)} images cannot be read, '
        f'{missing} of them missing:{"".join(lines)}'
    )


def list_classes(
    images: Sequence[LeafImage],
    info: UltraFGVCInfo,
    classes: Sequence[str] | None = None,
) -> tuple[str, ...]:
    """Sort classes by number or name.

    Labels then equal ``class_id`` of the CLCA authors in every layout.
    ``classes`` overrides the order, such as for a part of the dataset.

    Raises:
        Error: If ``classes`` does not contain the class of an image.
    """
    names = {image.class_name for image in images}
    if classes is None and info.is_numbered:
        classes = [str(i + 1) for i in range(info.num_classes)]
    if classes is None:
        classes = sorted(names, key=int if are_numbers(names) else str)
    unknown = sorted(names - set(classes), key=natural_key)
    if unknown:
        raise Error(
            f'{info.title}: {len(unknown)} classes of the images are not in '
            f'the list of {len(classes)} classes '
            f'({classes[0]}..{classes[-1]}): ' + ', '.join(unknown[:5])
        )
    return tuple(classes)


def label_images(
    images: Sequence[LeafImage], classes: Sequence[str]
) -> list[LeafImage]:
    """Add labels to images, and sort them by label and file name."""
    labels = {name: label for label, name in enumerate(classes)}
    labeled = [replace(x, label=labels[x.class_name]) for x in images]
    return sorted(labeled, key=lambda x: (x.label, natural_key(x.file_name)))


def natural_key(name: str) -> list:
    """Sort key with 2 before 10."""
    return [int(s) if s.isdecimal() else s for s in re.split(r'(\d+)', name)]


def are_numbers(names: set[str]) -> bool:
    """Return whether all names are integers."""
    return all(name.isdecimal() for name in names)
