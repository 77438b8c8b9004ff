# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Small timm models, and equal models of this package."""

from functools import partial

import torch
from safetensors.torch import save_file
from timm.models.vision_transformer import (
    ParallelThingsBlock,
    VisionTransformer,
)
from torch import nn

from mmclca.registry import MODELS

STYLES = dict(  # options in timm and in our backbone
    plain=({}, {}),
    deit3=(
        dict(no_embed_class=True, init_values=1.0),
        dict(layer_scale_init_value=1.0),
    ),
    clip=(
        dict(pre_norm=True, norm_layer=partial(nn.LayerNorm, eps=1e-5)),
        dict(pre_norm=True, norm_cfg=dict(type='LN', eps=1e-5)),
    ),
    miil=(dict(qkv_bias=False), dict(qkv_bias=False)),
    parallel=(
        dict(block_fn=partial(ParallelThingsBlock, num_parallel=3)),
        dict(branches=3),
    ),
    parallel_deit3=(
        dict(
            block_fn=ParallelThingsBlock, no_embed_class=True, init_values=1.0
        ),
        dict(branches=2, with_cls_pos=False, layer_scale_init_value=1.0),
    ),
)
HEAD = dict(type='VisionTransformerClsHead', num_classes=5, in_channels=16)
CLA_HEAD = dict(
    type='mmclca.CLAHead', num_classes=5, in_channels=16, num_layers=2
)
CACHE = dict(type='mmclca.CrossLayerCache')


def theirs(style='plain', img_size=32, **options):
    """Random timm model in float64, with an effect of each parameter."""
    model = VisionTransformer(
        img_size=img_size,
        patch_size=8,
        embed_dim=16,
        num_heads=2,
        mlp_ratio=2,
        **dict(dict(depth=3, num_classes=5), **STYLES[style][0], **options),
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model.double().eval()


def backbone_config(style='plain', img_size=32, depth=3, dims=16, **options):
    """Our backbone of equal size."""
    return dict(
        type='mmclca.TokenReductionViT',
        arch=dict(
            embed_dims=dims,
            num_layers=depth,
            num_heads=2,
            feedforward_channels=2 * dims,
        ),
        img_size=img_size,
        patch_size=8,
        **STYLES[style][1],
        **options,
    )


def config(style='plain', head=HEAD, cla=False, **options):
    """Our classifier of equal size; ``cla`` adds CLC and CLA."""
    if cla:
        clca = dict(reduce_at=(1,), cache=CACHE, out_indices=(1, -1))
        options = {**clca, 'final_norm': False, **options}
        head = dict(CLA_HEAD, num_classes=head['num_classes'])
    backbone = backbone_config(style, **options)
    return dict(
        type='mmclca.TokenReductionClassifier',
        backbone=backbone,
        head=dict(head, in_channels=backbone['arch']['embed_dims']),
    )


def ours(style='plain', **options):
    """Our classifier, float64."""
    return MODELS.build(config(style, **options)).double().eval()


def images(height=32, width=None):
    """Two images of noise, (2, 3, H, W), float64."""
    shape = (2, 3, height, width or height)
    return torch.randn(shape, dtype=torch.float64)


def write(path, contents):
    """Write weights in the format given by the extension."""
    save = save_file if path.suffix == '.safetensors' else torch.save
    save(contents, path)
    return str(path)


def release(model, num_clr=1, cla=True):
    """Weights as saved by the CLCA authors, for a timm model."""
    weights = dict(model.state_dict())
    rows = weights['pos_embed']
    new = torch.randn(1, num_clr, 16, dtype=rows.dtype)
    weights['pos_embed'] = torch.cat((rows, new), dim=1)
    weights['clr'] = torch.randn_like(new)
    if cla:
        head = MODELS.build(CLA_HEAD).double().state_dict()
        for name, value in head.items():
            weights[name.replace('layers.', 'ifa_head.0.')] = value
        del weights['norm.weight'], weights['norm.bias']
    return weights


class Call:
    """Object with a chosen pickle: a function, its arguments, a state."""

    def __init__(self, *parts):
        self.parts = parts

    def __reduce__(self):
        return self.parts
