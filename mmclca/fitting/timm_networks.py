# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Networks of timm for pretrained weights."""

from functools import cache
from typing import Any

from mmclca.checkpoints.checkpoint import Checkpoint
from mmclca.errors import Error
from mmclca.models.backbones import TimmStages
from mmclca.models.backbones.timm_stages import has_size
from mmclca.models.reduced import TimmViT
from mmclca.utils.meta_device import on_meta_device

TIMM_VIT = 'mmclca.TimmViT'
TIMM_STAGES = 'mmclca.TimmStages'


@cache
def find_timm_vit(arch: str) -> TimmViT | None:
    """Build a ViT of timm on the meta device, to read its sizes.

    Return None for another network, and for a ViT without a CLS token, whose
    features fit does not use.
    """
    with on_meta_device():
        try:
            return TimmViT(arch)
        except Error:
            return None


def recognize_timm_backbone(
    checkpoint: Checkpoint, arch: str
) -> dict[str, Any]:
    """Return settings of the network in timm, which must match the weights.

    A ViT gets token reduction; other networks do not, and are recognized with
    merged branches, too.

    Raises:
        CheckpointError: If weights differ.
    """
    vit = find_timm_vit(arch)
    if vit is None:
        return _recognize_stages(checkpoint, arch)
    weights = {
        f'net.{name}': tensor
        for name, tensor in checkpoint.weights.items()
        if name not in vit.unused
    }
    mismatches = vit.list_mismatches(weights, '')
    if mismatches:
        raise vit.refuse_weights(
            checkpoint.name, checkpoint.file_names, mismatches
        )
    return dict(type=TIMM_VIT, arch=arch)


def _recognize_stages(checkpoint: Checkpoint, arch: str) -> dict[str, Any]:
    """Recognize a network without token reduction."""
    mismatches = []
    for fused in (False, True):
        with on_meta_device():
            network = TimmStages(arch, fused=fused)
        weights = network.rename(checkpoint.weights)
        mismatches.append(network.list_mismatches(weights, ''))
        if not mismatches[-1]:
            backbone = dict(type=TIMM_STAGES, arch=arch, fused=fused)
            if has_size(arch):
                backbone['img_size'] = network.img_size[0]
            return backbone
    raise network.refuse_weights(
        checkpoint.name, checkpoint.file_names, min(mismatches, key=len)
    )
