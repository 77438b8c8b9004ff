# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Networks that fit reads as a whole: their settings, by shapes of weights.

Names are those of the backbones. What is learned and replaced on load, such
as LayerScale, is left to the defaults.
"""

from math import isqrt

from mmclca.checkpoints.error import CheckpointError

FFN = 'ffn.layers.0.0.weight'
CLASS_MIX = 'class_layers.0.mix.weight'


def cait(own: dict, name: str) -> dict:
    """Settings of a ``CaiT``.

    Args:
        own (dict): Its weights by the names of the backbone.
        name (str): The file.
    """
    width = own['cls_token'].size(-1)
    hidden = own[f'class_layers.0.{FFN}'].size(0)
    return dict(
        type='mmclca.CaiT',
        arch=dict(
            embed_dims=width,
            num_layers=_depth(own, 'layers.'),
            num_heads=own['layers.0.attn.mix_logits.weight'].size(0),
            feedforward_channels=own[f'layers.0.{FFN}'].size(0),
        ),
        patch_size=own['patch_embed.projection.weight'].size(2),
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
    patches = own['layers.0.mix.weight'].size(0)
    if isqrt(patches) ** 2 != patches:
        raise CheckpointError(
            f'{name} is of a ResMLP for {patches} patches, which are no '
            'square: fit takes square images'
        )
    return dict(
        type='mmclca.ResMLP',
        arch=_column(own['layers.0.ffn.layers.1.weight'].size(0), own),
        patch_size=patch,
        img_size=isqrt(patches) * patch,
        ending='class_mlp' if CLASS_MIX in own else 'average',
    )


def patch_convnet(own: dict, name: str) -> dict:
    """Settings of a ``PatchConvNet``.

    Args:
        own (dict): Its weights by the names of the backbone.
        name (str): The file.

    Raises:
        CheckpointError: If it has a query a class.
    """
    _, queries, width = own['pool.cls_token'].shape
    if queries > 1:
        raise CheckpointError(
            f'{name} is of a PatchConvNet with {queries} queries, one a '
            'class: fit takes one of a single query'
        )
    return dict(
        type='mmclca.PatchConvNet',
        arch=_column(width, own),
        class_mlp_ratio=own[f'pool.layer.{FFN}'].size(0) / width,
        qkv_bias='pool.layer.attn.q.bias' in own,
    )


def _column(width: int, own: dict) -> dict:
    return dict(embed_dims=width, num_layers=_depth(own, 'layers.'))


def _depth(own: dict, part: str) -> int:
    start = len(part)
    names = (key for key in own if key.startswith(part))
    return len({key[start:].split('.')[0] for key in names})


# by a parameter that no other network has
NETWORKS = {
    'class_layers.0.attn.q.weight': cait,
    'layers.0.mix.weight': resmlp,
    'layers.0.depthwise.weight': patch_convnet,
}
