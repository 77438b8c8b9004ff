# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Rename the parameters of a release as in this package.

The tables are in :mod:`mmclca.checkpoints.families`.
"""

import re
from collections import Counter

import torch
from torch import Tensor

from .families import FAMILIES, Family
from .families.family import renamed
from .families.vit import BARE, CLASSIFIER

# names of moving averages, preferred as in timm
EMA = re.compile(
    r'(?i)(?:^|[._])(?:ema|swa|averaged?|teacher|target)(?:[._]|$)'
)
# module names, without layer numbers
OUTER = r'(?:[A-Za-z_]\w*\.)*?'
# networks next to the encoder
ASIDE = r'momentum_encoder|encoder_k\b|decoder|predictor|text|student'
# a classifier next to an encoder with a prefix
HEAD = re.compile(rf'({OUTER})(?:head|fc|classifier)\.(weight|bias)')


def recognize(names: list[str]) -> tuple[Family, str] | None:
    """Recognize the release family by parameter names.

    Return the family and the encoder prefix; None for classifiers from this
    package and unknown families.
    """
    # first, because cache.clr matches other families
    if any(re.match(BARE.mark, name) for name in names):
        return BARE, ''
    for family in FAMILIES:
        mark = re.compile(f'({OUTER})(?:{family.mark})')
        prefixes = Counter(m[1] for m in map(mark.match, names) if m)
        if prefixes:
            is_renamed = family is CLASSIFIER and '' in prefixes
            return None if is_renamed else (family, _choose_encoder(prefixes))
    return None


def _choose_encoder(prefixes: Counter[str]) -> str:
    """Choose the encoder prefix by the number of names per prefix."""
    # next to a student, the teacher is its average
    has_student = any('student' in prefix for prefix in prefixes)
    aside = re.compile(ASIDE if has_student else f'{ASIDE}|teacher')
    return min(
        prefixes,
        key=lambda prefix: (
            bool(aside.search(prefix)),
            not prefix,
            not EMA.search(prefix),
            -prefixes[prefix],
        ),
    )


def rename_to_classifier(weights: dict, prefix: str = '') -> list[str]:
    """Rename the weights under a prefix to classifier names, in place.

    Existing classifier names are kept, and so are names from other networks
    in the file (a momentum encoder, a text tower).

    Returns:
        list[str]: Names dropped by the release family.
    """
    names = list_names(weights, prefix)
    recognized = recognize(names)
    if recognized is None:
        return []
    family, encoder = recognized
    heads = {name: HEAD.fullmatch(name) for name in names}
    parts = {}
    for name in names:
        head = heads[name]
        if name.startswith(encoder):
            part = name[len(encoder) :]
            for old, new in family.spelling:
                part = part.replace(old, new)
            parts[part] = weights.pop(prefix + name)
        elif head and encoder.startswith(head[1]):
            parts[f'head.{head[2]}'] = weights.pop(prefix + name)
    dropped = [name for name in parts if re.match(family.left_out, name)]
    for name in dropped:
        del parts[name]
    _reform(parts, family)
    for name, value in parts.items():
        weights[prefix + renamed(name, family)] = value
    return dropped


def _reform(weights: dict[str, Tensor], family: Family) -> None:
    """Convert and stack tensors, in place."""
    for pattern, new, change in family.values:
        for match in _match_all(weights, pattern):
            weights[match.expand(new)] = change(weights[match.string])
    for pattern, new in family.stacked:
        _stack(weights, _match_all(weights, pattern), new)


def _stack(
    weights: dict[str, Tensor], parts: list[re.Match], new: str
) -> None:
    """Concatenate parts in the order of numbers, or of query, key, value."""

    def position(match: re.Match) -> int:
        part = match['part']
        return int(part) if part.isdigit() else 'qkv'.index(part[0])

    stacks: dict[str, list[Tensor]] = {}
    for match in sorted(parts, key=position):
        rows = stacks.setdefault(match.expand(new), [])
        rows.append(weights.pop(match.string))
    weights |= {name: torch.cat(rows) for name, rows in stacks.items()}


def _match_all(weights: dict, pattern: str) -> list[re.Match]:
    """Match complete names, in the order of the weights."""
    matches = (re.fullmatch(pattern, name) for name in weights)
    return [match for match in matches if match]


def keep_backbone(weights: dict, prefix: str = '') -> None:
    """Keep the backbone of a classifier alone, under its own names, in place.

    Weights under the prefix without names of a classifier stay as they are.
    """
    names = list_names(weights, prefix)
    if not any(name.startswith('backbone.') for name in names):
        return
    for name in names:
        value = weights.pop(prefix + name)
        if name.startswith('backbone.'):
            weights[prefix + name.removeprefix('backbone.')] = value


def list_names(weights: dict, prefix: str) -> list[str]:
    """List the names under a prefix, without the prefix."""
    return [key[len(prefix) :] for key in weights if key.startswith(prefix)]
