# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Number of attention heads of stored weights, which no tensor shows."""

from mmengine.logging import MMLogger
from mmpretrain.models import VisionTransformer

from mmclca.registry import MODELS

from .gate.stored_config import read_stored_backbone
from .releases import WeightSource, heads_of_release


def compare_heads(backbone, source: WeightSource) -> None:
    """Log a warning if the weights have another head count."""
    ours = vars(backbone).get('arch_settings', {}).get('num_heads')
    theirs = known_heads(source, backbone.embed_dims)
    if ours and theirs and ours != theirs:
        MMLogger.get_current_instance().warning(
            f'{source.name} was trained with {theirs} attention heads, but '
            f'this model has {ours}, so its outputs are wrong; set '
            f'arch=dict(..., num_heads={theirs})'
        )


def known_heads(source: WeightSource, width: int) -> int | None:
    """Return the head count by the stored config or parameter names."""
    return _stored_heads(source.meta) or heads_of_release(
        source.keys, width, source.arch
    )


def _stored_heads(meta: dict) -> int | None:
    try:
        stored = read_stored_backbone(dict(meta=meta)) or {}
    except ValueError:  # unsafe, or without backbone
        return None
    kind = MODELS.get(stored['type']) if 'type' in stored else object
    if not issubclass(kind, VisionTransformer):
        return None
    arch = stored.get('arch')
    if isinstance(arch, str):
        arch = kind.arch_zoo.get(arch.lower())
    return arch.get('num_heads') if isinstance(arch, dict) else None
