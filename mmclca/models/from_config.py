# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What a config says of a part of a model, without weights."""

from copy import deepcopy
from inspect import signature

import torch
from mmpretrain.models.backbones import VisionTransformer

from mmclca.registry import MODELS

from .backbones import Reducible


def class_of(settings: dict | None) -> type:
    """The class that a config names; ``object`` for None."""
    kind = settings['type'] if settings else object
    found = kind if isinstance(kind, type) else MODELS.get(kind)
    if found is None:
        raise ValueError(
            f'type={kind!r} is not registered: import its module, for example '
            "by custom_imports=dict(imports=['my_module'])"
        )
    return found


def build_on_meta(backbone: dict) -> Reducible:
    """The backbone on the meta device: it knows its depth and channels."""
    with torch.device('meta'):
        return MODELS.build(deepcopy(backbone))


def gives_layers(kind: type) -> bool:
    """Whether a backbone can be told whose layers' output it returns."""
    named = 'out_indices' in signature(kind).parameters
    return named or issubclass(kind, VisionTransformer)
