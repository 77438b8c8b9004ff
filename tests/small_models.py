# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Small models and inputs for tests."""

from unittest.mock import patch

import torch

from mmclca.models import TokenReducer
from mmclca.models.reduction.tokens import Tokens
from mmclca.registry import MODELS

REDUCERS = sorted(
    name
    for name, registered in MODELS.module_dict.items()
    if issubclass(registered, TokenReducer)
)
REDUCE_AT = (3, 6, 9)
CACHE = dict(type='mmclca.CrossLayerCache')
CACHES = (  # no cache; CLR tokens with and without the average
    None,
    dict(CACHE, num_tokens=0),
    dict(CACHE, num_tokens=1, with_gap=False),
    CACHE,
    dict(CACHE, num_tokens=2, with_gap=False),
    dict(CACHE, num_tokens=2),
)


def arch(num_layers=12, embed_dims=16):
    """Settings of a narrow vision transformer."""
    return dict(
        embed_dims=embed_dims,
        num_layers=num_layers,
        num_heads=2,
        feedforward_channels=2 * embed_dims,
    )


RESMLP = dict(  # fits head and images of the tiny model
    type='mmclca.ResMLP',
    arch=dict(embed_dims=24, num_layers=2),
    img_size=32,
    patch_size=8,
)
PATCH_CONVNET = dict(
    type='mmclca.PatchConvNet',
    arch=dict(embed_dims=24, num_layers=1),
    img_size=32,
)


def vit(num_layers=12, img_size=32, patch_size=8, **options):
    """Config of a backbone; 4 x 4 patches by default."""
    return dict(
        type='mmclca.TokenReductionViT',
        arch=arch(num_layers),
        img_size=img_size,
        patch_size=patch_size,
        **options,
    )


def classifier(backbone, cla=False, num_classes=5, **options):
    """Classifier config with a backbone."""
    head = dict(num_classes=num_classes, in_channels=16)
    if cla:
        layers = (*backbone['reduce_at'], -1)
        backbone = dict(backbone, out_indices=layers, final_norm=False)
        head.update(type='mmclca.CLAHead', num_layers=len(layers))
    else:
        head.update(type='LinearClsHead')
    return dict(
        type='mmclca.TokenReductionClassifier',
        backbone=backbone,
        head=head,
        **options,
    )


def build(config):
    """Build a model and move every parameter from its initial value."""
    model = MODELS.build(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model


def reduced_model(reducer, cache=None, keep_rate=0.5, cla=False, **options):
    """Build a classifier of six layers in float64 with two reductions."""
    reducer = dict(type=f'mmclca.{reducer}', keep_rate=keep_rate)
    places = dict(reducer=reducer, reduce_at=(1, 3), cache=cache)
    backbone = vit(6, **places, **options)
    return build(classifier(backbone, cla)).eval().double()


def images(batch=2, height=32, width=None):
    """Return random images, (B, 3, H, W)."""
    return torch.randn(batch, 3, height, width or height)


def token_counts(backbone, x):
    """Return input and output tokens per layer, before any recovery."""
    counts, run = [], backbone.run_layer

    def note(layer, tokens, stage):
        left = run(layer, tokens, stage)
        counts.append((tokens.features.size(1), left.features.size(1)))
        return left

    with patch.object(backbone, 'run_layer', note):
        backbone.forward_tokens(x)
    return counts


def gradients(model):
    """Return gradients by parameter name."""
    return {name: p.grad for name, p in model.named_parameters()}


def traced(trace, batch_size, num_patches):
    """Return tokens without features, with a trace."""
    x = torch.empty(batch_size, 0, 0)
    return Tokens(x, num_patches=num_patches, trace=trace)
