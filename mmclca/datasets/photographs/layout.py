# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Recognize splits and variants of a dataset among its folders."""

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from .check import abbreviated
from .photographs import PARTS, split_named, words_of
from .spellings import clean

Parts = Sequence[tuple[str, ...]]
# words of folders that have all classes, in one variant or one part each
_WORDS = (
    r'(colou?r(ed)?|gr[ae]y(scale)?|rgb|nir|infrared|thermal|depth|masks?'
    r'|segment(ed|ations?)|orig(inals?)?|aug(mented|mentations?)?|raw'
    r'|processed|crop(s|ped)?|resized?|scaled|noisy|blurred|flipped|rotated'
    r'|images?|imgs?|photos|pictures|labels|annotations'
    r'|((k )?folds?|parts?|batch|sets?|subset|session|round|run|site|camera'
    r'|cam|device|phone|version|v) (\d+|[a-d]|i+))'
)
_VARIANT = re.compile(rf'(\d+ )?{_WORDS}( ({_WORDS}|data|\d+))*')
_DENSE = 0.6  # share of all pairs of outer and inner folders that exist


def find_levels(
    parts: Parts, folder: Path
) -> tuple[int | None, int, list[str]]:
    """Find the levels of the paths that name splits and classes.

    Args:
        parts (Sequence[tuple[str, ...]]): Path of each image, split at its
            folders.
        folder (Path): The folder of these paths, named in errors.

    Returns:
        tuple[int | None, int, list[str]]: The level of the splits, None if
        there are none; that of the classes; and notes for the user.

    Raises:
        ValueError: If the first level is splits or variants rather than
            classes, but cannot be read as splits.
    """
    deep = [part for part in parts if len(part) > 1]
    swapped = [(part[1], part[0], *part[2:]) for part in deep]
    for split, label, found in (
        (0, 1, _are_splits(deep)),
        (1, 2, _are_splits(_without(deep, 0))),  # a folder around all
        (0, 2, _are_splits(_without(deep, 1))),  # such as train/images/rose
        (1, 0, _are_splits(swapped, every=True)),
    ):
        if found:
            names = {x[split] for x in deep if split_named(x[split]) in PARTS}
            read = ', '.join(f'{x} as {split_named(x)}' for x in sorted(names))
            is_new = (split, label) != (0, 1) or names - {*PARTS}
            return split, label, [f'splits: {read}'] if is_new else []
    return None, 0, _check_variants(deep, folder)


def _without(parts: Parts, level: int) -> Parts:
    """Drop a level if all paths have the same folder there."""
    is_deep = all(len(part) > 3 for part in parts)
    if len({part[level] for part in parts}) > 1 or not is_deep:
        return []
    return [part[:level] + part[level + 1 :] for part in parts]


def _held(parts: Parts) -> dict[str, set[str]]:
    """Return the classes in each folder; files are not counted."""
    held = defaultdict(set)
    for part in parts:
        held[part[0]].update(map(clean, part[1:2] if len(part) > 2 else ()))
    return held


def _are_splits(parts: Parts, every: bool = False) -> bool:
    """Return whether the first level is certainly splits: ``train`` may be a
    class, too, so other splits must have some of its classes, or none."""
    held = _held(parts)
    kinds = {name: split_named(name) for name in held}
    train = {name for name in held if kinds[name] == 'train'}
    others = {name for name in held if kinds[name]} - train
    is_flat = any(len(part) < 3 for part in parts if part[0] in train)
    left = held.keys() - train - others
    if not train or is_flat or (left and (every or not others)):
        return False
    classes = set.union(*(held[name] for name in train))
    known = (not held[name] or held[name] & classes for name in others)
    return len(classes) > 1 and all(known)


def _check_variants(parts: Parts, folder: Path) -> list[str]:
    """Refuse folders of variants; note folders that may be such."""
    held = defaultdict(set)  # also files, as images and masks share names
    for part in parts:
        held[part[0]].add(Path(part[1]).stem)
    kinds = [split_named(name) for name in held]
    variants = [_VARIANT.fullmatch(words_of(name)) for name in held]
    below = set().union(*held.values())
    pairs = sum(map(len, held.values()))
    is_same = pairs > _DENSE * len(held) * len(below) and len(below) > 1
    if len(held) < 2 or not (is_same or all(kinds)):
        return []
    look = '{} look like splits or variants of the data, as each holds {}'
    look = look.format(*(abbreviated(sorted(x)) for x in (held, below)))
    text = (
        f'{folder}: {look}: name them train, val and test, or give one, such '
        f'as {folder / min(held)}; if they are the classes, name the class of '
        'each photo in a table (--labels TABLE)'
    )
    is_flat = any(len(part) == 2 for part in parts)
    # numbers and dates are subfolders of a class
    may_be = not is_flat and not any(re.search(r'\d', x) for x in below)
    named = all(kinds) and not is_flat or all(variants)
    if named or (may_be and any(kinds)):
        raise ValueError(text)
    return [text] if may_be and len(below) >= len(held) else []
