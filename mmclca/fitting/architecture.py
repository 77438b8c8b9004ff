# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What network a file of weights is of, by names and shapes."""

from math import isqrt

from torch import Tensor

from mmclca.checkpoints.error import CheckpointError
from mmclca.checkpoints.families.family import POS_EMBED
from mmclca.checkpoints.releases import (
    rename_to_classifier,
    source_of,
    weights_of,
)

from .whole_networks import whole_network

# channels of a head, but for the models whose heads are wider
HEAD_DIMS, WIDE = 64, {1280: 16, 1408: 16, 1664: 16}
LAYER = 'layers.0.'
PATCHES = 'patch_embed.projection.weight'
KNOWN = (
    'fit takes ViT, DeiT and DINOv2 with a CLS token, CaiT, ResMLP and '
    'PatchConvNet'
)
VIT = 'mmclca.TokenReductionViT'
# parameters of transformers that are not taken
REFUSED = {
    'pre_norm.weight': 'an image tower of CLIP',
    'dist_token': 'a distilled DeiT',
}


def backbone_of(checkpoint: dict) -> dict:
    """Settings of the backbone that a file's weights fit.

    Args:
        checkpoint (dict): As
            :func:`mmclca.checkpoints.downloading.open_checkpoint` gives it.

    Returns:
        dict: ``type``, ``arch`` and what else it is not built without; all
        but ``img_size``, unless it takes images of one size only.

    Raises:
        CheckpointError: If they are of no network that is known here.
        ValueError: If the config of one that is read as a whole is more than
            plain settings.
    """
    weights = dict(weights_of(checkpoint))
    name = source_of(weights_of(checkpoint)).name
    rename_to_classifier(weights, '')
    own = {
        key.removeprefix('backbone.').replace(*_foreign()): value
        for key, value in weights.items()
        if key.startswith('backbone.') and isinstance(value, Tensor)
    }
    return whole_network(checkpoint, own, name) or _vit(own, name)


def _vit(own: dict, name: str) -> dict:
    _check(own, name)
    backbone = dict(
        type=VIT,
        arch=_arch(own, name),
        patch_size=own[PATCHES].size(2),
        norm_cfg=dict(type='LN', eps=1e-6),
    )
    if f'{LAYER}attn.qkv.bias' not in own:
        backbone['qkv_bias'] = False
    if f'{LAYER}attn.gamma1.weight' in own:
        backbone['layer_scale_init_value'] = 1e-5  # replaced on load
    if 'register_tokens' in own:
        backbone['num_registers'] = own['register_tokens'].size(1)
    if _is_square(own['pos_embed'].size(1)):
        backbone['with_cls_pos'] = False
    return backbone


def _foreign() -> tuple[str, str]:
    return POS_EMBED.removeprefix('backbone.'), 'pos_embed'


def _check(own: dict, name: str) -> None:
    """Refuse weights of what is no ViT, DeiT or DINOv2."""
    other = next((REFUSED[key] for key in REFUSED if key in own), None)
    needed = (PATCHES, 'cls_token', 'pos_embed')
    needed += (f'{LAYER}attn.qkv.weight', f'{LAYER}ffn.layers.0.0.weight')
    missing = [key for key in needed if key not in own]
    if other is None and missing:
        other = f'a model without {", ".join(missing)}'
    if other is not None:
        raise CheckpointError(f'{name} is of {other}: {KNOWN}')
    rows = own['pos_embed'].size(1)
    if not _is_square(rows) and not _is_square(rows - 1):
        raise CheckpointError(
            f'{name} has {rows} positions, which are no square of patches, '
            f'nor one and CLS: {KNOWN}'
        )


def _arch(own: dict, name: str) -> dict:
    width = own[PATCHES].size(0)
    heads = WIDE.get(width, width / HEAD_DIMS)
    if heads % 1:
        raise CheckpointError(
            f'{name} has {width} channels, and how many heads is not known: '
            f'{KNOWN}, whose heads have {HEAD_DIMS} channels'
        )
    layers = {key.split('.')[1] for key in own if key.startswith('layers.')}
    return dict(
        embed_dims=width,
        num_layers=len(layers),
        num_heads=int(heads),
        feedforward_channels=own[f'{LAYER}ffn.layers.0.0.weight'].size(0),
    )


def _is_square(number: int) -> bool:
    return isqrt(number) ** 2 == number
