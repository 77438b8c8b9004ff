# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""From the names in a file to those of this package."""

import re

import torch

from .families import Family, recognize
from .families.mmpretrain import BARE


def rename_to_classifier(state_dict: dict, prefix: str) -> list[str]:
    """Give the keys under ``prefix`` the names of a classifier, in place.

    Those of a classifier stay as they are, and so do those of what lies
    beside the encoder of a file (a momentum encoder, a text tower).

    Returns:
        list[str]: What the family of the file leaves out.
    """
    names = _names(state_dict, prefix)
    found = recognize(names)
    if found is None:
        return []
    family, encoder = found
    weights = {
        name[len(encoder) :]: state_dict.pop(prefix + name)
        for name in names
        if name.startswith(encoder)
    }
    left_out = [name for name in weights if re.match(family.left_out, name)]
    for name in left_out:
        del weights[name]
    _reform(weights, family)
    for name, value in weights.items():
        state_dict[prefix + family.rename(name)] = value
    return left_out


def _reform(weights: dict, family: Family) -> None:
    """Give tensors the form of this package's, in place."""
    for pattern, new, change in family.values:
        for match in _matches(weights, pattern):
            weights[match.expand(new)] = change(weights[match.string])
    for pattern, new in family.stacked:
        matches = sorted(_matches(weights, pattern), key=lambda m: int(m[1]))
        if matches:
            rows = [weights.pop(match.string) for match in matches]
            weights[new] = torch.cat(rows)


def _matches(weights: dict, pattern: str) -> list[re.Match]:
    found = (re.fullmatch(pattern, name) for name in weights)
    return [match for match in found if match]


def rename_to_backbone(state_dict: dict, prefix: str) -> list[str]:
    """As :func:`rename_to_classifier`, for a backbone alone, in place.

    Of the file of a classifier only the backbone is left.
    """
    if any(re.match(BARE.mark, name) for name in _names(state_dict, prefix)):
        return []
    left_out = rename_to_classifier(state_dict, prefix)
    own = f'{prefix}backbone.'
    if any(key.startswith(own) for key in state_dict):
        for name in _names(state_dict, prefix):
            value = state_dict.pop(prefix + name)
            if name.startswith('backbone.'):
                own_name = name.removeprefix('backbone.')
                state_dict[prefix + own_name] = value
    return left_out


def _names(state_dict: dict, prefix: str) -> list[str]:
    keys = [key for key in state_dict if key.startswith(prefix)]
    return [key[len(prefix) :] for key in keys]
