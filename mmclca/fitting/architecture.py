# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What network a file of weights is of, by names and shapes.

Names are those of the backbones. CaiT, ResMLP and PatchConvNet are read as a
whole, where a KeyError is a name that a release has. All else of them (heads,
eps, where CLS enters) is in the config that training stores; without one it
is as in the releases, LayerScale replaced on load. What would be built is
checked against the file.
"""

from inspect import signature
from math import isqrt

import torch
from mmpretrain.models.backbones.base_backbone import BaseBackbone
from torch import Tensor

from mmclca.checkpoints.error import CheckpointError
from mmclca.checkpoints.families.family import POS_EMBED
from mmclca.checkpoints.releases import (
    rename_to_classifier,
    source_of,
    weights_of,
)
from mmclca.checkpoints.report import compare_weights, first, wrong_parameters
from mmclca.checkpoints.stored import stored_backbone
from mmclca.registry import MODELS

# channels of a head, but for the models whose heads are wider
HEAD_DIMS, WIDE = 64, {1280: 16, 1408: 16, 1664: 16}
LAYER = 'layers.0.'
PATCHES = 'patch_embed.projection.weight'
KNOWN = (
    'fit takes ViT, DeiT and DINOv2 with a CLS token, CaiT, ResMLP and '
    'PatchConvNet'
)
VIT = 'mmclca.TokenReductionViT'
CAIT, RESMLP = 'mmclca.CaiT', 'mmclca.ResMLP'
PATCH_CONVNET = 'mmclca.PatchConvNet'
FFN = 'ffn.layers.0.0.weight'
CLASS_MIX = 'class_layers.0.mix.weight'
# parameters of transformers that are not taken
REFUSED = {
    'pre_norm.weight': 'an image tower of CLIP',
    'dist_token': 'a distilled DeiT',
}
# chosen by fit, or what its images and head leave no choice in
SET_BY_FIT = ('img_size', 'in_channels', 'multiclass')
TAKEN = (
    'fit takes the network of the releases, or a checkpoint that holds the '
    'config of its model, as tools/train.py writes it'
)


def backbone_of(checkpoint: dict) -> dict:
    """Settings of the backbone that an opened file's weights fit.

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
    settings = _settings(checkpoint, own, name)
    if settings is None:
        return _vit(own, name)
    return _whole_network(settings, own, name)


def _whole_network(settings: dict, own: dict, name: str) -> dict:
    """Settings of a CaiT, ResMLP or PatchConvNet, checked."""
    if settings.get('multiclass'):
        raise CheckpointError(
            f'{name} is of a PatchConvNet with {settings["multiclass"]} '
            'queries, one a class: fit takes one of a single query'
        )
    network = _build(settings, name)
    unfit, unused = compare_weights(network.state_dict(), own)
    wrong = wrong_parameters(network, unfit, unused)
    if wrong:
        raise _refusal(settings['type'], wrong, name)
    if settings['type'] == RESMLP or 'pos_embed' in own:
        _check_square(network, name)
    return _of_fit(settings, network)


def _settings(checkpoint: dict, own: dict, name: str) -> dict | None:
    """Those that the file stores, else those of a release of its shapes."""
    kind = next((NETWORKS[key] for key in NETWORKS if key in own), None)
    try:
        stored = stored_backbone(checkpoint) or {}
    except ValueError:
        if kind is not None:
            raise
        stored = {}  # of another network, whose config is not needed
    if stored.get('type') in READERS:
        return stored
    if kind is None:
        return None
    try:
        return READERS[kind](own, name)
    except KeyError as error:
        missing = f'{error.args[0]} is missing'
        raise _refusal(kind, [missing], name) from error


def _build(settings: dict, name: str) -> BaseBackbone:
    """The network without memory, for images of three channels."""
    chosen = {k: v for k, v in settings.items() if k != 'in_channels'}
    try:
        with torch.device('meta'):
            return MODELS.build(chosen)
    except (TypeError, ValueError) as error:
        raise CheckpointError(
            f'the config in {name} makes no {settings["type"]}: {error}'
        ) from error


def _refusal(kind: str, wrong: list[str], name: str) -> CheckpointError:
    return CheckpointError(
        f'{name} is not of the {kind} that fit would build: {len(wrong)} '
        f'parameters are wrong: {first(wrong)}: {TAKEN}'
    )


def _check_square(network: BaseBackbone, name: str) -> None:
    sides = (network.img_size, network.patch_resolution)
    if any(height != width for height, width in sides):
        raise CheckpointError(
            f'{name} is of a network for images of {network.img_size} px, in '
            f'{network.patch_resolution} patches: fit takes square images'
        )


def _of_fit(settings: dict, network: BaseBackbone) -> dict:
    """Settings without what fit chooses, with an arch in numbers."""
    kind = type(network)
    arch = settings.get('arch', signature(kind).parameters['arch'].default)
    if not isinstance(arch, dict):
        arch = kind.arch_zoo[arch.lower()]
    kept = {k: v for k, v in settings.items() if k not in SET_BY_FIT}
    if settings['type'] == RESMLP:  # it takes no other
        kept['img_size'] = network.img_size[0]
    return dict(kept, arch=arch)


def _cait(own: dict, name: str) -> dict:
    """Settings of a ``CaiT``."""
    width = own['cls_token'].size(-1)
    hidden = own[f'class_layers.0.{FFN}'].size(0)
    patch = own['patch_embed.projection.weight'].size(2)
    return dict(
        type=CAIT,
        arch=dict(
            embed_dims=width,
            num_layers=_depth(own, 'layers.'),
            num_heads=own['layers.0.attn.mix_logits.weight'].size(0),
            feedforward_channels=own[f'layers.0.{FFN}'].size(0),
        ),
        img_size=_side(own['pos_embed'].size(1), name) * patch,
        patch_size=patch,
        num_class_layers=_depth(own, 'class_layers.'),
        class_mlp_ratio=hidden / width,
        qkv_bias='layers.0.attn.qkv.bias' in own,
    )


def _resmlp(own: dict, name: str) -> dict:
    """Settings of a ``ResMLP``, which takes images of one size."""
    patch = own['patch_embed.projection.weight'].size(2)
    return dict(
        type=RESMLP,
        arch=_column(own['layers.0.ffn.layers.1.weight'].size(0), own),
        patch_size=patch,
        img_size=_side(own['layers.0.mix.weight'].size(0), name) * patch,
        ending='class_mlp' if CLASS_MIX in own else 'average',
    )


def _patch_convnet(own: dict, name: str) -> dict:
    """Settings of a ``PatchConvNet``."""
    _, queries, width = own['pool.cls_token'].shape
    return dict(
        type=PATCH_CONVNET,
        arch=_column(width, own),
        multiclass=queries > 1 and queries,
        class_mlp_ratio=own[f'pool.layer.{FFN}'].size(0) / width,
        qkv_bias='pool.layer.attn.q.bias' in own,
    )


def _side(patches: int, name: str) -> int:
    """Patches in a side of an image."""
    if isqrt(patches) ** 2 != patches:
        raise CheckpointError(
            f'{name} is of a network for {patches} patches, which are no '
            'square: fit takes square images'
        )
    return isqrt(patches)


def _column(width: int, own: dict) -> dict:
    return dict(embed_dims=width, num_layers=_depth(own, 'layers.'))


def _depth(own: dict, part: str) -> int:
    start = len(part)
    names = (key for key in own if key.startswith(part))
    return len({key[start:].split('.')[0] for key in names})


# by parameters that no other network has
NETWORKS = {
    'class_layers.0.attn.q.weight': CAIT,
    'layers.0.attn.mix_logits.weight': CAIT,
    'layers.0.mix.weight': RESMLP,
    'layers.0.norm1.alpha': RESMLP,
    'layers.0.depthwise.weight': PATCH_CONVNET,
}
READERS = {CAIT: _cait, RESMLP: _resmlp, PATCH_CONVNET: _patch_convnet}


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


def _check(own: dict, name: str) -> None:
    """Refuse weights of what is no ViT, DeiT or DINOv2."""
    other = next((REFUSED[key] for key in REFUSED if key in own), None)
    needed = (PATCHES, 'cls_token', 'pos_embed')
    needed += (f'{LAYER}attn.qkv.weight', f'{LAYER}{FFN}')
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
    return dict(
        embed_dims=width,
        num_layers=_depth(own, 'layers.'),
        num_heads=int(heads),
        feedforward_channels=own[f'{LAYER}{FFN}'].size(0),
    )


def _is_square(number: int) -> bool:
    return isqrt(number) ** 2 == number
