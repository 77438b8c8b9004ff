# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Networks that fit reads as a whole: their settings, by shapes of weights.

Names are those of the backbones, and a KeyError is one that a release has.
All else (heads, eps, where CLS enters) is in the config that training stores;
without one it is as in the releases, LayerScale replaced on load. What would
be built is checked against the file.
"""

from inspect import signature
from math import isqrt

import torch
from mmpretrain.models.backbones.base_backbone import BaseBackbone

from mmclca.checkpoints.error import CheckpointError
from mmclca.checkpoints.report import compare_weights, first, wrong_parameters
from mmclca.checkpoints.stored import stored_backbone
from mmclca.registry import MODELS

CAIT, RESMLP = 'mmclca.CaiT', 'mmclca.ResMLP'
PATCH_CONVNET = 'mmclca.PatchConvNet'
FFN = 'ffn.layers.0.0.weight'
CLASS_MIX = 'class_layers.0.mix.weight'


def cait(own: dict, name: str) -> dict:
    """Settings of a ``CaiT``.

    Args:
        own (dict): Its weights by the names of the backbone.
        name (str): The file.

    Raises:
        CheckpointError: If its images are no squares.
    """
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


def resmlp(own: dict, name: str) -> dict:
    """Settings of a ``ResMLP``, which takes images of one size.

    Args:
        own (dict): Its weights by the names of the backbone.
        name (str): The file.

    Raises:
        CheckpointError: If its images are no squares.
    """
    patch = own['patch_embed.projection.weight'].size(2)
    return dict(
        type=RESMLP,
        arch=_column(own['layers.0.ffn.layers.1.weight'].size(0), own),
        patch_size=patch,
        img_size=_side(own['layers.0.mix.weight'].size(0), name) * patch,
        ending='class_mlp' if CLASS_MIX in own else 'average',
    )


def patch_convnet(own: dict, name: str) -> dict:
    """Settings of a ``PatchConvNet``.

    Args:
        own (dict): Its weights by the names of the backbone.
        name (str): The file.
    """
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
READERS = {CAIT: cait, RESMLP: resmlp, PATCH_CONVNET: patch_convnet}


# chosen by fit, or what its images and head leave no choice in
SET_BY_FIT = ('img_size', 'in_channels', 'multiclass')
TAKEN = (
    'fit takes the network of the releases, or a checkpoint that holds the '
    'config of its model, as tools/train.py writes it'
)


def whole_network(checkpoint: dict, own: dict, name: str) -> dict | None:
    """Settings of a CaiT, ResMLP or PatchConvNet.

    Args:
        checkpoint (dict): The file, opened.
        own (dict): Its weights by the names of the backbone.
        name (str): The file.

    Returns:
        dict | None: None where the file is of none of them.

    Raises:
        CheckpointError: If the parameters of the file are not those of the
            network that would be built, or fit has no use for it.
        ValueError: If the config in the file is more than plain settings.
    """
    settings = _settings(checkpoint, own, name)
    if settings is None:
        return None
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
        stored = stored_backbone(checkpoint)
    except ValueError:
        if kind is None:  # of another network, whose config is not needed
            return None
        raise
    if stored is not None and stored.get('type') in READERS:
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
