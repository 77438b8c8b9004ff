# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Recognize splits and variants of a dataset among its folders."""

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from mmclca.errors import Error
from mmclca.utils.messages import join_first

from .labeled_images import SPLITS, recognize_split, split_words
from .spellings import normalize_name

Parts = Sequence[tuple[str, ...]]
# folder names for dataset variants or parts rather than classes
_WORDS = (
    r'(colou?r(ed)?|gr[ae]y(scale)?|rgb|nir|infrared|thermal|depth|masks?|raw'
    r'|segment(ed|ations?)|orig(inals?)?|aug(mented|mentations?)?|processed'
    r'|crop(s|ped)?|resized?|scaled|noisy|blurred|flipped|rotated|images?'
    r'|imgs?|photos|pictures|labels|annotations|((k )?folds?|parts?|batch|run'
    r'|sets?|subset|session|round|site|cam(era)?|device|phone|version|v)'
    r' (\d+|[a-d]|i+))'
)
_VARIANT = re.compile(
    rf'(\d+ )?((with(out)?|no) )?{_WORDS}( ({_WORDS}|data|\d+))*'
)
_DENSE = 0.6  # share of existing pairs of outer and inner folders


def find_levels(parts: Parts, folder: Path) -> tuple:
    """Find the path levels of the splits and classes.

    ``parts`` are the paths, split at folders, below ``folder``. Return the
    split level or None, the class level, and notes for the user.

    Raises:
        Error: If the first level contains splits or variants instead of
            classes, but cannot be read as splits.
    """
    deep = [part for part in parts if len(part) > 1]
    swapped = [(x[1], x[0], *x[2:]) for x in deep if len(x) > 2]
    for split, label, found in (
        (0, 1, _are_splits(deep)),
        (1, 2, _are_splits(_without(deep, 0))),  # for example data/train/rose
        (0, 2, _are_splits(_without(deep, 1))),  # or train/images/rose
        (1, 0, _are_splits(swapped)),
    ):
        if found:
            names = {
                x[split] for x in deep if recognize_split(x[split]) in SPLITS
            }
            read = ', '.join(
                f'{x} as {recognize_split(x)}' for x in sorted(names)
            )
            is_new = (split, label) != (0, 1) or names - {*SPLITS}
            return split, label, [f'splits: {read}'] if is_new else []
    _check_mixed(deep, folder)
    return None, 0, _check_variants(deep, folder)


def _check_mixed(parts: Parts, folder: Path) -> None:
    """Refuse a split next to class folders."""
    held = {part[0]: set() for part in parts}
    for part in parts:
        held[part[0]].update(map(normalize_name, part[1:-1]))
    classes = {normalize_name(name) for name in held}
    for name, inner in held.items():
        kind = recognize_split(name)
        if kind and (inner & classes or not (inner or kind in SPLITS)):
            raise Error(
                f'{folder}: {name} looks like a split or like photos without '
                'a class, but is next to class folders; move it elsewhere, or '
                'rename it if it is a class'
            )


def _without(parts: Parts, level: int) -> Parts:
    """Drop a level if each parent folder has a single folder there."""
    above, here = (
        {part[:end] for part in parts} for end in (level, level + 1)
    )
    is_deep = all(len(part) > level + 1 for part in parts)
    if len(here) > len(above) or not is_deep:
        return []
    return [part[:level] + part[level + 1 :] for part in parts]


def _are_splits(parts: Parts) -> bool:
    """Return whether the first level certainly contains splits.

    ``train`` may be a class, so the other splits must share its classes.
    """
    held = defaultdict(set)
    for part in parts:
        names = part[1:2] if len(part) > 2 else ()
        held[part[0]].update(map(normalize_name, names))
    train = {name for name in held if recognize_split(name) == 'train'}
    others = {name for name in held if recognize_split(name)} - train
    is_flat = any(len(part) < 3 for part in parts if part[0] in train)
    if not train or is_flat or (not others and train < held.keys()):
        return False
    classes = set.union(*(held[name] for name in train))
    known = (not held[name] or held[name] & classes for name in others)
    return len(classes) > 1 and all(known)


def _check_variants(parts: Parts, folder: Path) -> list[str]:
    """Refuse folders of variants; add a note on doubtful folders."""
    held = defaultdict(set)  # includes files: images and masks share names
    for part in parts:
        held[part[0]].add(Path(part[1]).stem)
    below = set().union(*held.values())
    pairs = sum(map(len, held.values()))
    is_same = pairs > _DENSE * len(held) * len(below) and len(below) > 1
    kinds = [recognize_split(name) for name in held]
    if len(held) < 2 or not (is_same or all(kinds)):
        return []
    look = '{} look like splits or variants of the dataset: each holds {}'
    look = look.format(*(join_first(sorted(x), 3) for x in (held, below)))
    look += ', and train is missing' * (all(kinds) and 'train' not in kinds)
    advice = f'name them train, val and test, or use {folder / min(held)}'
    is_flat = any(len(part) == 2 for part in parts)
    # subfolders of a class are few or numbered, unlike classes
    numbered = [any(re.search(r'\d', x) for x in y) for y in (held, below)]
    may_be = not is_flat and not numbered[1]
    variants = [_VARIANT.fullmatch(split_words(name)) for name in held]
    pairs = zip(variants, kinds, strict=True)
    is_named = all(x or (kind and not is_flat) for x, kind in pairs)
    # numbered folders with numbered photos are classes
    is_named = is_named and not (is_flat and all(numbered))
    is_many = len(below) >= len(held)
    splits = len([*filter(None, kinds)])
    if is_named or (may_be and (splits > 1 or (numbered[0] and is_many))):
        raise Error(
            f'{folder}: {look}; {advice}; if they are the classes, list files '
            'and classes in a table (--labels TABLE)'
        )
    is_likely = may_be and (numbered[0] or is_many)
    note = f'{look}; they are treated as classes; if they are splits, {advice}'
    return [note] * is_likely
