# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Rename table for a release family, and its architecture from shapes."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt

from torch import Tensor

# name for positions from a foreign file, which may lack a row for CLS
POS_EMBED = 'backbone.foreign_pos_embed'
PATCHES = 'patch_embed.projection.weight'
FFN = 'layers.0.ffn.layers.0.0.weight'


@dataclass(frozen=True)
class Network:
    """Backbone with settings inferred from its parameters.

    Args:
        type (str): Registered type.
        marks (tuple[str, ...]): Parameters unique to this backbone.
        settings (Callable): Returns the settings for a dict of tensors with
            backbone names. The number of heads is None if no tensor shows it.
    """

    type: str
    marks: tuple[str, ...]
    settings: Callable[[dict[str, Tensor]], dict]


@dataclass(frozen=True)
class Family:
    """Rename table for files with the same parameter names.

    Patterns match at the beginning of a name, after the prefix of the encoder
    (any module names, as in ``module.model.``). The steps are applied in the
    order ``spelling``, ``left_out``, ``values``, ``stacked``, ``renames``.

    Args:
        mark (str): Pattern for a name, to recognize a file.
        renames (tuple[tuple[str, str]]): Patterns and replacements by
            classifier names in this package (``backbone.``, ``head.``). The
            first match applies. Unmatched names go to the backbone, which
            refuses unknown ones.
        left_out (str): Pattern for names to drop. Defaults to a pattern
            without matches.
        values (tuple[tuple[str, str, Callable]]): Pattern for a complete
            name, result name (the same or an additional one), and tensor
            function.
        stacked (tuple[tuple[str, str]]): Pattern for complete names with a
            group ``part`` (a number, or query, key or value), and name for
            the tensor stacked along the first axis.
        spelling (tuple[tuple[str, str]]): Substrings and replacements, to
            reuse tables from another family.
        backbone (Network, optional): Backbone in the files. Defaults to None:
            a plain ViT.
    """

    mark: str
    renames: tuple[tuple[str, str], ...]
    left_out: str = r'(?!)'
    values: tuple[tuple[str, str, Callable[[Tensor], Tensor]], ...] = ()
    stacked: tuple[tuple[str, str], ...] = ()
    spelling: tuple[tuple[str, str], ...] = ()
    backbone: Network | None = None


def renamed(name: str, family: Family) -> str:
    """Return the parameter name in classifiers of this package."""
    for pattern, new in family.renames:
        if re.match(pattern, name):
            return re.sub(pattern, new, name, count=1)
    return f'backbone.{name}'


def spelling(pairs: str) -> tuple[tuple[str, str], ...]:
    """Parse pairs ``old>new`` separated by spaces."""
    return tuple(tuple(pair.split('>')) for pair in pairs.split())


def width_and_depth(weights: dict, token: str) -> dict:
    """Return the number of layers, and the width by the shape of a token."""
    layers = {
        key.split('.')[1] for key in weights if key.startswith('layers.')
    }
    return dict(embed_dims=weights[token].size(-1), num_layers=len(layers))


def transformer_sizes(weights: dict, num_heads: int | None = None) -> dict:
    """Return the ``arch`` of a transformer with a CLS token."""
    hidden = weights[FFN].size(0)
    arch = width_and_depth(weights, 'cls_token')
    return dict(arch, num_heads=num_heads, feedforward_channels=hidden)


def patch_settings(weights: dict, num_patches: int, arch: dict) -> dict:
    """Return the settings for square images by their number of patches."""
    patch = weights[PATCHES].size(2)
    return dict(
        arch=arch, patch_size=patch, img_size=isqrt(num_patches) * patch
    )
