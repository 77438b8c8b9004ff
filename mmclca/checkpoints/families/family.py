# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Tables of a family of releases, and its architecture read from shapes."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt

from torch import Tensor

from ..error import CheckpointError

# the name of positions from a foreign file, in which CLS may have none
POS_EMBED = 'backbone.foreign_pos_embed'


# channels per head, and the number of heads by width if they are wider
HEAD_DIMS, WIDE = 64, {1280: 16, 1408: 16, 1664: 16}
PATCHES = 'patch_embed.projection.weight'
FFN = 'layers.0.ffn.layers.0.0.weight'


@dataclass(frozen=True)
class Network:
    """Backbone whose settings can be inferred from its parameters.

    Args:
        type (str): Registered type.
        marks (tuple[str, ...]): Parameters that no other backbone has.
        settings (Callable): Returns the settings for a dict of tensors with
            the names of the backbone.
    """

    type: str
    marks: tuple[str, ...]
    settings: Callable[[dict[str, Tensor]], dict]


@dataclass(frozen=True)
class Family:
    """Files whose tensors have the same names, and what these become.

    All patterns are matched at the beginning of a name, after the prefix of
    the encoder, which may be any names of modules (``module.model.``).

    Args:
        mark (str): Pattern of a name by which a file is recognized.
        renames (tuple[tuple[str, str]]): Patterns, and the names in a
            classifier of this package (``backbone.``, ``head.``). The first
            pattern that matches a name applies. Other names go to the
            backbone, which refuses what it has no place for.
        left_out (str): Pattern of what a file has and no model needs.
            Defaults to one that no name matches.
        values (tuple[tuple[str, str, Callable]]): Pattern of whole names in
            the file, name of what is made of each such tensor (the same or
            one more), and what makes it. Names change after that.
        stacked (tuple[tuple[str, str]]): Pattern of whole names whose group
            ``part`` is a number, or query, key or value; and the name of the
            tensor that these become, along the first axis. Names change
            after that.
        spelling (tuple[tuple[str, str]]): Texts in names, and those that
            replace them before all else, in this order: the names of another
            family that the other tables have.
        backbone (Network, optional): Backbone of these files. Defaults to
            None: a plain ViT.
    """

    mark: str
    renames: tuple[tuple[str, str], ...]
    left_out: str = r'(?!)'
    values: tuple[tuple[str, str, Callable[[Tensor], Tensor]], ...] = ()
    stacked: tuple[tuple[str, str], ...] = ()
    spelling: tuple[tuple[str, str], ...] = ()
    backbone: Network | None = None


def renamed(name: str, family: Family) -> str:
    """Return the name of a parameter in a classifier of this package."""
    for pattern, new in family.renames:
        if re.match(pattern, name):
            return re.sub(pattern, new, name, count=1)
    return f'backbone.{name}'


def spelling(pairs: str) -> tuple[tuple[str, str], ...]:
    """Read pairs of texts, ``old>new`` with spaces between them."""
    return tuple(tuple(pair.split('>')) for pair in pairs.split())


def sizes(weights: dict, token: str) -> dict:
    """Return width, which is that of ``token``, and number of layers."""
    layers = {
        key.split('.')[1] for key in weights if key.startswith('layers.')
    }
    return dict(embed_dims=weights[token].size(-1), num_layers=len(layers))


def transformer_sizes(weights: dict, num_heads: int) -> dict:
    """Return the ``arch`` of a transformer with a CLS token."""
    hidden = weights[FFN].size(0)
    arch = sizes(weights, 'cls_token')
    return dict(arch, num_heads=num_heads, feedforward_channels=hidden)


def image_settings(weights: dict, num_patches: int, arch: dict) -> dict:
    """Return the settings for square images of so many patches."""
    patch = weights[PATCHES].size(2)
    return dict(
        arch=arch, patch_size=patch, img_size=isqrt(num_patches) * patch
    )


def usual_heads(width: int) -> int:
    """Return the number of heads in releases of a width.

    Raises:
        CheckpointError: If it is unknown.
    """
    heads = WIDE.get(width, width / HEAD_DIMS)
    if heads % 1:
        raise CheckpointError(
            f'cannot infer the number of heads: embed_dims={width} is not a '
            f'multiple of {HEAD_DIMS}; use a checkpoint with its config'
        )
    return int(heads)
