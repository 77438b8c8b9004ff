# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""PatchConvNet: its counts, any image size, start, freezing, ablations."""

import pytest
import torch
from small_models import images
from torch import nn

from mmclca.evaluation.cost import count_config
from mmclca.models import PatchConvNet
from mmclca.registry import MODELS

SMALL = dict(embed_dims=48, num_layers=2)
BN = dict(type='BN')


def backbone(arch=SMALL, img_size=32, **options):
    settings = dict(arch=arch, img_size=img_size, **options)
    return dict(type='mmclca.PatchConvNet', **settings)


def classifier(num_classes=5, head='LinearClsHead', **options):
    """Config of a small classifier, or of one of the paper's sizes."""
    config = backbone(**options)
    arch = config['arch']
    zoo = PatchConvNet.arch_zoo
    dims = zoo[arch] if isinstance(arch, str) else arch
    sizes = dict(num_classes=num_classes, in_channels=dims['embed_dims'])
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
    params, macs = counted(arch='s20')
    conv_stem = 27 * d // 8 + 189 * d * d // 32
    stem_macs = 224**2 * (27 * d + 27 * d**2 // 16) // 32
    found = {
        name: tuple(
            there - here
            for there, here in zip(
                counted(arch='s20', **options), (params, macs), strict=True
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


def test_positions_are_resized_for_another_size():
    model = built(with_pos=True, img_size=(32, 64))
    assert model.pos_embed.shape == (1, 2 * 4, 48)
    assert model(images(1, 48, 48))[0].shape == (1, 48)
    x = images(1, 32, 64)
    out = model(x)[0]
    model.pos_embed.data.add_(torch.randn_like(model.pos_embed))
    assert not torch.allclose(model(x)[0], out)


@pytest.mark.parametrize('multiclass', [False, 3])
def test_without_layer_scale_the_image_does_not_count(multiclass):
    model = built(multiclass=multiclass)
    assert model(images(2))[0].std(dim=0).max() > 1e-3
    for name, parameter in model.named_parameters():
        if 'gamma' in name:
            parameter.data.zero_()
    out = model(images(2))[0]
    assert torch.equal(out[0], out[1])
    assert out.shape == ((2, 3, 48) if multiclass else (2, 48))


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


def test_layer_scale_that_is_asked_for():
    model = MODELS.build(backbone(layer_scale_init_value=0.1))
    gammas = {k: v for k, v in model.state_dict().items() if 'gamma' in k}
    assert len(gammas) == 2 + 2
    assert all((gamma == 0.1).all() for gamma in gammas.values())
    plain = MODELS.build(backbone(layer_scale_init_value=0)).state_dict()
    assert not any('gamma' in name for name in plain)


def test_stochastic_depth_is_the_same_in_every_layer():
    model = MODELS.build(backbone(drop_path_rate=0.3))
    assert [layer.drop_path.drop_prob for layer in model.layers] == [0.3] * 2


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


def test_depth_of_parameters():
    model = MODELS.build(backbone(with_pos=True))
    depths = {
        name.split('.')[0]: model.get_layer_depth(
            f'backbone.{name}', 'backbone.'
        )
        for name, _ in model.named_parameters()
        if not name.startswith('layers.0')
    }
    assert depths == dict(
        pos_embed=(0, 4), patch_embed=(0, 4), layers=(2, 4), pool=(3, 4)
    )
    assert model.get_layer_depth('head.fc.weight', 'backbone.') == (3, 4)


@pytest.mark.parametrize(
    'options, message',
    [
        (dict(arch='s61'), "arch: no 's61'.*s60"),
        (dict(arch=dict(embed_dims=48)), 'lacks num_layers'),
        (dict(arch=dict(SMALL, num_heads=1)), "no 'num_heads'"),
        (dict(multiclass=True), 'multiclass=True must be an integer'),
        (dict(multiclass=0), 'multiclass=0 must be an integer'),
        (dict(pooling='max'), "pooling: no 'max'"),
        (dict(pooling='average', multiclass=3), "pooling='average' has none"),
        (dict(num_heads=5), 'num_heads=5 does not divide embed_dims=48'),
        (dict(norm_cfg=dict(type='GN')), "norm_cfg: no 'GN'.*LN, BN, SyncBN"),
    ],
    ids=str,
)
def test_what_is_not_allowed(options, message):
    with pytest.raises(ValueError, match=message) as error:
        MODELS.build(backbone(**options))
    assert '\n' not in str(error.value)
