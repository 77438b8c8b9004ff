# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""PatchConvNet: counts, image sizes, norms, freezing."""

import torch
from small_models import build, images
from torch import nn

from mmclca.evaluation.cost import count_config
from mmclca.registry import MODELS

SMALL = dict(embed_dims=48, num_layers=2)
BN = dict(type='BN')


def backbone(arch=SMALL, img_size=32, **options):
    settings = dict(arch=arch, img_size=img_size, **options)
    return dict(type='mmclca.PatchConvNet', **settings)


def built(**options):
    """A backbone with perturbed parameters, in eval mode."""
    return build(backbone(**options)).eval()


def counted(**options):
    """Parameters and multiply-accumulates at 224 pixels."""
    config = backbone(img_size=224, **options)
    sizes = dict(num_classes=1000, in_channels=config['arch']['embed_dims'])
    head = dict(type='LinearClsHead', **sizes)
    model = dict(type='ImageClassifier', backbone=config, head=head)
    cost = count_config(model)
    return cost.params, cost.flops


def test_parameters_and_macs_of_ablations():
    d, N = 384, 196
    arch = dict(embed_dims=d, num_layers=1)
    params, macs = counted(arch=arch)
    conv_stem = 27 * d // 8 + 189 * d * d // 32
    stem_macs = 224**2 * (27 * d + 27 * d**2 // 16) // 32
    pool = (10 * d * d + 14 * d) + d
    pool_macs = 2 * (N + 1) * d * d + 8 * d * d + 2 * (N + 1) * d
    for options, more_params, more_macs in (
        (dict(stem=None), 769 * d - conv_stem, N * 768 * d - stem_macs),
        (dict(norm_cfg=BN), 0, 0),
        (dict(pooling='average'), -pool, -pool_macs - (N + 2) * d),
        (dict(with_pos=True), N * d, 0),
    ):
        expected = params + more_params, macs + more_macs
        assert counted(arch=arch, **options) == expected, options


def test_patches_cover_images_of_any_size():
    model, size, grid = built(), (105, 40), (7, 3)
    with torch.no_grad():
        x = images(2, *size)
        assert model.extract_maps(x).shape[2:] == grid
        (out,) = model(x)
        (attention,) = model.class_attention(x)
    assert out.shape == (2, 48)
    assert attention.shape == (2, 1, 1, 1 + grid[0] * grid[1])
    ones = torch.ones(2, 1, 1)
    torch.testing.assert_close(attention.sum(dim=-1), ones)
    shapes = [
        {k: v.shape for k, v in built(img_size=n).state_dict().items()}
        for n in (32, size)
    ]
    assert shapes[0] == shapes[1]


def test_batch_norm_applies_to_column_only():
    model = built(norm_cfg=BN)
    kinds = {type(m) for m in model.modules() if 'Norm' in type(m).__name__}
    assert kinds == {nn.BatchNorm2d, nn.LayerNorm}
    assert model.pool.ln.eps == 1e-6


def test_frozen_stages_keep_pooling_trainable():
    model = MODELS.build(
        backbone(frozen_stages=2, norm_cfg=BN, with_pos=True)
    ).train()
    trained = {n for n, p in model.named_parameters() if p.requires_grad}
    assert trained == {f'pool.{n}' for n, _ in model.pool.named_parameters()}
    before = model.layers[0].norm.running_mean.clone()
    model(images(2))[0].sum().backward()
    assert torch.equal(model.layers[0].norm.running_mean, before)
    part = MODELS.build(backbone(frozen_stages=1))
    assert all(p.requires_grad for p in part.layers[1].parameters())
    assert not any(p.requires_grad for p in part.patch_embed.parameters())
