# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Number of attention heads of stored weights, which no tensor shows."""

import re
from dataclasses import dataclass

from mmengine.logging import MMLogger
from mmpretrain.models import VisionTransformer
from mmpretrain.models.backbones.base_backbone import BaseBackbone

from mmclca.errors import Error
from mmclca.registry import MODELS

from .checkpoint import Checkpoint
from .error import CheckpointError
from .families.pretraining import DECODED
from .gate.stored_config import read_stored_backbone
from .rename import OUTER

# channels per head, and head counts by width if they are wider
HEAD_DIMS, WIDE = 64, {1280: 16, 1408: 16, 1664: 16}
# MoCo v3 releases; their ViT-S has twelve heads
MOCO = re.compile(rf'{OUTER}(?:base|momentum)_encoder\.')
MOCO_ARCHS = ('vit_small', 'vit_conv_small')
# embedding dimensions with twelve heads in MAE-Lite and MIRL
TWELVE = (192, 384)


@dataclass(frozen=True)
class NumHeads:
    """Number of attention heads.

    Args:
        number (int): The number.
        is_assumed (bool): Whether it is the usual one for the width, because
            neither a config nor the names of a release show it.
    """

    number: int
    is_assumed: bool


def infer_num_heads(checkpoint: Checkpoint, embed_dims: int) -> NumHeads:
    """Infer the number of attention heads of a ViT.

    It comes from the stored config; 12 for small encoders from MoCo v3, and
    from MAE-Lite and MIRL in files with their decoders; else one per 64
    channels.

    Raises:
        CheckpointError: If it is unknown.
    """
    stored = _read_num_heads(checkpoint)
    if stored is not None:
        return NumHeads(stored, is_assumed=False)
    names = checkpoint.file_names
    has_decoder = any(map(DECODED.match, names))
    is_moco = checkpoint.arch in MOCO_ARCHS or any(map(MOCO.match, names))
    if has_decoder and embed_dims in TWELVE or is_moco and embed_dims == 384:
        return NumHeads(12, is_assumed=False)
    number = WIDE.get(embed_dims, embed_dims / HEAD_DIMS)
    if number % 1:
        raise CheckpointError(
            f'cannot infer the number of heads: embed_dims={embed_dims} is '
            f'not a multiple of {HEAD_DIMS}; use a checkpoint with its config'
        )
    return NumHeads(int(number), is_assumed=True)


def _read_num_heads(checkpoint: Checkpoint) -> int | None:
    """Read the number of heads in the stored config, None without one."""
    try:
        stored = read_stored_backbone(checkpoint) or {}
    except Error:  # unsafe, or without backbone
        return None
    if 'type' not in stored:
        return None
    backbone_class = MODELS.get(stored['type'])
    if not issubclass(backbone_class, VisionTransformer):
        return None
    arch = stored.get('arch')
    if isinstance(arch, str):
        arch = backbone_class.arch_zoo.get(arch.lower())
    return arch.get('num_heads') if isinstance(arch, dict) else None


def warn_other_heads(backbone: BaseBackbone, checkpoint: Checkpoint) -> None:
    """Log a warning if the weights have another number of heads.

    Args:
        backbone (BaseBackbone): The backbone, with ``embed_dims``.
        checkpoint (Checkpoint): The opened checkpoint.
    """
    ours = vars(backbone).get('arch_settings', {}).get('num_heads')
    if not ours:
        return
    try:
        theirs = infer_num_heads(checkpoint, backbone.embed_dims)
    except CheckpointError:  # an unusual width
        return
    if not theirs.is_assumed and theirs.number != ours:
        MMLogger.get_current_instance().warning(
            f'{checkpoint.name} was trained with {theirs.number} attention '
            f'heads, but this model has {ours}, so its outputs are wrong; set '
            f'arch=dict(..., num_heads={theirs.number})'
        )
