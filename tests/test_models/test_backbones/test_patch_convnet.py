# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""PatchConvNet: its counts, any image size, start, freezing, ablations."""

import pytest
import torch
from small_models import images
from torch import nn

from mmclca.evaluation.cost import count_config
from mmclca.registry import MODELS

SMALL = dict(embed_dims=48, num_layers=2)
BN = dict(type='BN')


def backbone(arch=SMALL, img_size=32, **options):
    settings = dict(arch=arch, img_size=img_size, **options)
    return dict(type='mmclca.PatchConvNet', **settings)


def classifier(num_classes=5, head='LinearClsHead', **options):
    config = backbone(**options)
    dims = config['arch']['embed_dims']
    sizes = dict(num_classes=num_classes, in_channels=dims)
    return dict(
        type='ImageClassifier', backbone=config, head=dict(type=head, **sizes)
    )


def built(**options):
    """A backbone every parameter of which matters, in eval mode."""
    model = MODELS.build(backbone(**options))
    for parameter in model.parameters():
        parameter.data.add_(0.2 * torch.randn_like(parameter))
    return model.eval()


def counted(**options):
    """Parameters and multiply-accumulates at 224 pixels."""
    cost = count_config(classifier(1000, img_size=224, **options))
    return cost.params, cost.flops


def test_what_ablations_leave_out():
    d, N = 384, 196
    arch = dict(embed_dims=d, num_layers=1)
    params, macs = counted(arch=arch)
    conv_stem = 27 * d // 8 + 189 * d * d // 32
    stem_macs = 224**2 * (27 * d + 27 * d**2 // 16) // 32
    found = {
        name: tuple(
            there - here
            for there, here in zip(
                counted(arch=arch, **options), (params, macs), strict=True
            )
        )
        for name, options in dict(
            linear=dict(stem=None),
            batch_norm=dict(norm_cfg=BN),
            average=dict(pooling='average'),
            position=dict(with_pos=True),
        ).items()
    }
    assert found['linear'] == (769 * d - conv_stem, N * 768 * d - stem_macs)
    assert found['batch_norm'] == (0, 0)
    pool = (10 * d * d + 14 * d) + d
    pool_macs = 2 * (N + 1) * d * d + 8 * d * d + 2 * (N + 1) * d
    assert found['average'] == (-pool, -pool_macs - (N + 2) * d)
    assert found['position'] == (N * d, 0)


@pytest.mark.parametrize(
    'size, grid',
    [((32, 32), (2, 2)), ((105, 40), (7, 3)), ((72, 33), (5, 3))],
    ids=str,
)
def test_any_image_size(size, grid):
    """One model for all; as many patches as cover the image."""
    model = built()
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


def test_weights_from_scratch():
    """Normal linear layers and query; convolutions as torch draws them."""
    model = MODELS.build(backbone(dict(embed_dims=128, num_layers=1)))
    model.init_weights()
    linear = [m for m in model.modules() if isinstance(m, nn.Linear)]
    assert len(linear) == 6
    for layer in linear:
        assert layer.weight.std().item() == pytest.approx(0.02, rel=0.05)
        assert not layer.bias.any()
    query = model.pool.cls_token.std().item()
    assert query == pytest.approx(0.02, rel=0.2)
    convs = [m for m in model.modules() if isinstance(m, nn.Conv2d)]
    assert len(convs) == 4 + 5
    for conv in convs:  # uniform within 1 / sqrt(inputs)
        bound = conv.weight[0].numel() ** -0.5
        assert 0.9 * bound < conv.weight.abs().max() <= bound
        assert conv.weight.mean().abs() < 0.1 * bound
    assert all(conv.bias.any() for conv in convs[4:])


def test_batch_norm_in_the_column_only():
    model = built(norm_cfg=BN)
    kinds = {type(m) for m in model.modules() if 'Norm' in type(m).__name__}
    assert kinds == {nn.BatchNorm2d, nn.LayerNorm}
    assert model.pool.ln.eps == 1e-6


def test_frozen_stages():
    """Stem and column as they are, statistics too; the pooling learns."""
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
