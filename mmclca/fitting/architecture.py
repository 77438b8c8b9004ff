# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The architecture of a file of weights, by names and shapes.

Names are those of the backbones; a KeyError is a name that a release has. All
else of CaiT, ResMLP and PatchConvNet (heads, eps, where CLS enters) is in the
config that training stores; without one it is as in the releases, LayerScale
replaced on load. What would be built is checked against the file.
"""

from inspect import signature
from math import isqrt

import torch
from mmpretrain.models.backbones.base_backbone import BaseBackbone
from torch import Tensor

from mmclca.checkpoints.error import CheckpointError
from mmclca.checkpoints.families.family import POS_EMBED
from mmclca.checkpoints.loading import compare_weights, first, wrong_parameters
from mmclca.checkpoints.releases import (
    rename_to_classifier,
    source_of,
    weights_of,
)
from mmclca.checkpoints.stored import stored_backbone
from mmclca.registry import MODELS

# channels of a head, but for the models whose heads are wider
HEAD_DIMS, WIDE = 64, {1280: 16, 1408: 16, 1664: 16}
LAYER = 'layers.0.'
PATCHES = 'patch_embed.projection.weight'
VIT = 'mmclca.TokenReductionViT'
CAIT, RESMLP = 'mmclca.CaiT', 'mmclca.ResMLP'
PATCH_CONVNET = 'mmclca.PatchConvNet'
FFN = 'ffn.layers.0.0.weight'
CLASS_MIX = 'class_layers.0.mix.weight'
# in what its images and head leave no choice
FIXED = ('in_channels', 'multiclass')
TAKEN = (
    'fit takes ViT, DeiT and DINOv2 with a CLS token; CaiT, ResMLP and '
    'PatchConvNet as in the releases, or from a checkpoint that holds the '
    'config of its model, as tools/train.py writes it'
)


def backbone_of(checkpoint: dict) -> dict:
    """Read settings of the backbone that an opened file's weights fit.

    ``type``, ``arch`` and what else it is not built without; all but
    ``img_size``, unless it takes images of one size only. A CheckpointError
    says that they are of no network that is known here, a ValueError that a
    config in the file is more than plain settings.
    """
    weights = dict(weights_of(checkpoint))
    name = source_of(weights_of(checkpoint)).name
    rename_to_classifier(weights, '')
    foreign = POS_EMBED.removeprefix('backbone.')
    own = {
        key.removeprefix('backbone.').replace(foreign, 'pos_embed'): value
        for key, value in weights.items()
        if key.startswith('backbone.') and isinstance(value, Tensor)
    }
    kind = next((NETWORKS[key] for key in NETWORKS if key in own), VIT)
    try:
        settings = _stored(checkpoint, kind) or READERS[kind](own)
    except KeyError as error:
        missing = f'{error.args[0]} is missing'
        raise _refusal(kind, [missing], name) from error
    except IndexError as error:
        shapes = ['a tensor has too few dimensions']
        raise _refusal(kind, shapes, name) from error
    network = _build(settings, name)
    _compare(network, settings['type'], own, name)
    return _of_fit(settings, network)


def _stored(checkpoint: dict, kind: str) -> dict | None:
    """Read the settings of a whole network that the file stores, if any."""
    try:
        stored = stored_backbone(checkpoint) or {}
    except ValueError:
        if kind != VIT:
            raise
        return None  # of another network, whose config is not needed
    return stored if stored.get('type') in NETWORKS.values() else None


def _build(settings: dict, name: str) -> BaseBackbone:
    """Build the network without memory, but for what fit leaves no choice."""
    chosen = {k: v for k, v in settings.items() if k not in FIXED}
    try:
        with torch.device('meta'):
            return MODELS.build(chosen)
    except (TypeError, ValueError) as error:
        raise CheckpointError(
            f'the config in {name} makes no {settings["type"]}: {error}'
        ) from error


def _compare(network: BaseBackbone, kind: str, own: dict, name: str) -> None:
    """Refuse weights of another network, or of images that are no squares."""
    unfit, unused = compare_weights(network.state_dict(), own)
    wrong = wrong_parameters(network, unfit, unused)
    if wrong:
        raise _refusal(kind, wrong, name)
    sides = network.img_size, network.patch_resolution
    has_size = kind == RESMLP or 'pos_embed' in own
    if has_size and any(height != width for height, width in sides):
        raise CheckpointError(
            f'{name} is of a network for images of {network.img_size} px, in '
            f'{network.patch_resolution} patches: fit takes square images'
        )


def _refusal(kind: str, wrong: list[str], name: str) -> CheckpointError:
    return CheckpointError(
        f'{name} is not of the {kind} that fit would build: {len(wrong)} '
        f'parameters are wrong: {first(wrong)}: {TAKEN}'
    )


def _of_fit(settings: dict, network: BaseBackbone) -> dict:
    """Leave out what fit chooses, and write the arch in numbers."""
    kind = type(network)
    arch = settings.get('arch', signature(kind).parameters['arch'].default)
    if not isinstance(arch, dict):
        arch = kind.arch_zoo[arch.lower()]
    left_out = (*FIXED, 'img_size')
    kept = {k: v for k, v in settings.items() if k not in left_out}
    if settings['type'] == RESMLP:  # it takes no other
        kept['img_size'] = network.img_size[0]
    return dict(kept, arch=arch)


def _cait(own: dict) -> dict:
    """Read the settings of a ``CaiT``."""
    patch = own[PATCHES].size(2)
    return dict(
        type=CAIT,
        arch=dict(
            _sizes(own, 'cls_token'),
            num_heads=own['layers.0.attn.mix_logits.weight'].size(0),
            feedforward_channels=own[f'{LAYER}{FFN}'].size(0),
        ),
        patch_size=patch,
        img_size=isqrt(own['pos_embed'].size(1)) * patch,
    )


def _resmlp(own: dict) -> dict:
    """Read the settings of a ``ResMLP``, which takes images of one size."""
    patch = own[PATCHES].size(2)
    return dict(
        type=RESMLP,
        arch=_sizes(own, 'layers.0.norm1.alpha'),
        patch_size=patch,
        img_size=isqrt(own['layers.0.mix.weight'].size(0)) * patch,
        ending='class_mlp' if CLASS_MIX in own else 'average',
    )


def _patch_convnet(own: dict) -> dict:
    """Read the settings of a ``PatchConvNet``."""
    return dict(type=PATCH_CONVNET, arch=_sizes(own, 'pool.cls_token'))


def _sizes(own: dict, token: str) -> dict:
    """Read the width of a parameter's channels, and count the layers."""
    layers = {key.split('.')[1] for key in own if key.startswith('layers.')}
    return dict(embed_dims=own[token].size(-1), num_layers=len(layers))


def _vit(own: dict) -> dict:
    """Read the settings of a ViT, DeiT or DINOv2."""
    patch, rows = own[PATCHES].size(2), own['pos_embed'].size(1)
    backbone = dict(
        type=VIT,
        arch=dict(
            _sizes(own, 'cls_token'),
            num_heads=_heads(own['cls_token'].size(-1)),
            feedforward_channels=own[f'{LAYER}{FFN}'].size(0),
        ),
        img_size=isqrt(rows) * patch,
        patch_size=patch,
        norm_cfg=dict(type='LN', eps=1e-6),
    )
    if f'{LAYER}attn.qkv.bias' not in own:
        backbone['qkv_bias'] = False
    if f'{LAYER}attn.gamma1.weight' in own:
        backbone['layer_scale_init_value'] = 1e-5  # replaced on load
    if 'register_tokens' in own:
        backbone['num_registers'] = own['register_tokens'].size(1)
    if isqrt(rows) ** 2 == rows:
        backbone['with_cls_pos'] = False
    return backbone


def _heads(width: int) -> int:
    heads = WIDE.get(width, width / HEAD_DIMS)
    if heads % 1:
        raise CheckpointError(
            f'the weights have {width} channels, and how many heads is not '
            f'known: fit takes those with {HEAD_DIMS} channels a head'
        )
    return int(heads)


# by parameters that no other network has
NETWORKS = {
    'class_layers.0.attn.q.weight': CAIT,
    'layers.0.attn.mix_logits.weight': CAIT,
    'layers.0.mix.weight': RESMLP,
    'layers.0.norm1.alpha': RESMLP,
    'layers.0.depthwise.weight': PATCH_CONVNET,
}
READERS = {
    VIT: _vit,
    CAIT: _cait,
    RESMLP: _resmlp,
    PATCH_CONVNET: _patch_convnet,
}
