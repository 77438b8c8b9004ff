# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Networks that fit reads as a whole: their settings, by shapes of weights.

Names are those of the backbones, and a KeyError is one that a release has.
All else is as in the releases: LayerScale, which is replaced on load, and what
no weight tells.
"""

from math import isqrt

from mmclca.checkpoints.error import CheckpointError

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
