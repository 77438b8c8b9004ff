# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Recognize splits and variants of a dataset among its folders."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mmclca.errors import Error
from mmclca.languages import Note
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


@dataclass(frozen=True)
class Levels:
    """Path levels of a dataset, counted from 0.

    Args:
        split (int | None): Level with split folders, if any.
        label (int): Level with class folders.
        notes (list[Note]): Assumptions, one line each.
    """

    split: int | None
    label: int
    notes: list[Note]


def find_levels(parts: Parts, folder: Path) -> Levels:
    """Find the path levels of the splits and classes.

    ``parts`` are the paths, split at folders, below ``folder``.

    Raises:
        Error: If the first level contains splits or variants instead of
            classes, but cannot be read as splits.
    """
    deep = [part for part in parts if len(part) > 1]
    swapped = [part[1::-1] + part[2:] for part in deep if len(part) > 2]
    for split, label, are_splits in (
        (0, 1, _are_splits(deep)),
        (1, 2, _are_splits(_without(deep, 0))),  # for example data/train/rose
        (0, 2, _are_splits(_without(deep, 1))),  # or train/images/rose
        (1, 0, _are_splits(swapped)),
    ):
        if are_splits:
            names = {
                x[split] for x in deep if recognize_split(x[split]) in SPLITS
            }
            read = ', '.join(
                f'{x} -> {recognize_split(x)}' for x in sorted(names)
            )
            is_new = (split, label) != (0, 1) or names - {*SPLITS}
            notes = [Note('photos.splits', dict(splits=read))]
            return Levels(split, label, notes if is_new else [])
    _check_mixed(deep, folder)
    return Levels(None, 0, _check_variants(deep, folder))


def _check_mixed(parts: Parts, folder: Path) -> None:
    """Refuse a split next to class folders."""
    subfolders = {part[0]: set() for part in parts}
    for part in parts:
        subfolders[part[0]].update(map(normalize_name, part[1:-1]))
    classes = {normalize_name(name) for name in subfolders}
    for name, inner in subfolders.items():
        split = recognize_split(name)
        if split and (inner & classes or not (inner or split in SPLITS)):
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
    subfolders = defaultdict(set)
    for part in parts:
        names = part[1:2] if len(part) > 2 else ()
        subfolders[part[0]].update(map(normalize_name, names))
    train = {name for name in subfolders if recognize_split(name) == 'train'}
    evaluated = {name for name in subfolders if recognize_split(name)} - train
    is_flat = any(len(part) < 3 for part in parts if part[0] in train)
    if not train or is_flat or (not evaluated and train < subfolders.keys()):
        return False
    classes = {inner for name in train for inner in subfolders[name]}
    return len(classes) > 1 and all(
        not subfolders[name] or subfolders[name] & classes
        for name in evaluated
    )


def _check_variants(parts: Parts, folder: Path) -> list[Note]:
    """Refuse folders of variants; add a note on doubtful folders."""
    contents = defaultdict(set)  # includes files: images and masks share names
    for part in parts:
        contents[part[0]].add(Path(part[1]).stem)
    below = {name for names in contents.values() for name in names}
    num_pairs = sum(map(len, contents.values()))
    is_same = (
        num_pairs > _DENSE * len(contents) * len(below) and len(below) > 1
    )
    kinds = [recognize_split(name) for name in contents]
    if len(contents) < 2 or not (is_same or all(kinds)):
        return []
    lacks_train = all(kinds) and 'train' not in kinds
    names, inner = (join_first(sorted(x), 3) for x in (contents, below))
    look = (
        f'{names} look like splits or variants of the dataset: each holds '
        f'{inner}'
    )
    look += ', and train is missing' * lacks_train
    first = folder / min(contents)
    is_flat = any(len(part) == 2 for part in parts)
    # subfolders of a class are few or numbered, unlike classes
    numbered = [any(re.search(r'\d', x) for x in y) for y in (contents, below)]
    may_be = not is_flat and not numbered[1]
    variants = [_VARIANT.fullmatch(split_words(name)) for name in contents]
    pairs = zip(variants, kinds, strict=True)
    is_named = all(x or (split and not is_flat) for x, split in pairs)
    # numbered folders with numbered photos are classes
    is_named = is_named and not (is_flat and all(numbered))
    is_many = len(below) >= len(contents)
    splits = len([*filter(None, kinds)])
    if is_named or (may_be and (splits > 1 or (numbered[0] and is_many))):
        raise Error(
            f'{folder}: {look}; name them train, val and test, or use {first};'
            ' if they are the classes, list files and classes in a table '
            '(`labels`)'
        )
    is_likely = may_be and (numbered[0] or is_many)
    key = 'photos.variants_no_train' if lacks_train else 'photos.variants'
    values = dict(names=names, inner=inner, folder=str(first))
    return [Note(key, values)] * is_likely
