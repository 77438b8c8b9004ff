# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Convolutional stems: masking, grids, cost, freezing, public code."""

import pytest
import torch
from family_parity import STEMS, cases, check_gradients, sums, weights
from parity import close, images
from small_models import vit

from mmclca.evaluation.cost import count_config
from mmclca.models.stems import ConvStem, HMLPStem
from mmclca.registry import MODELS

BN = dict(type='BN')
LN = dict(type='LN2d', eps=1e-6)
HMLP = dict(type='mmclca.HMLPStem')
CONV = dict(type='mmclca.ConvStem')


def stem_of(kind=HMLPStem, norm_cfg=BN, train=False):
    """A stem with perturbed parameters and statistics."""
    stem = kind(16, 48, norm_cfg=norm_cfg)
    with torch.no_grad():
        stem(torch.randn(8, 3, 48, 48))
        for parameter in stem.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return stem.train(train)


def commutes(stem):
    """Whether masking other patches keeps the tokens."""
    x, keep = torch.randn(4, 3, 48, 64), torch.rand(4, 1, 3, 4) < 0.5
    pixels = keep.repeat_interleave(16, 2).repeat_interleave(16, 3)
    with torch.no_grad():
        whole, hw = stem(x)
        masked, _ = stem(x * pixels)
    assert hw == (3, 4)
    keep = keep.flatten()
    return torch.equal(whole.flatten(0, 1)[keep], masked.flatten(0, 1)[keep])


@pytest.mark.parametrize(
    'kind, norm_cfg, train, expected',
    [
        (HMLPStem, BN, False, True),
        (HMLPStem, LN, True, True),
        (HMLPStem, BN, True, False),
        (HMLPStem, dict(type='GN', num_groups=1), False, False),
        (ConvStem, BN, False, False),
    ],
    ids=str,
)
def test_masking_commutes_with_stem(kind, norm_cfg, train, expected):
    assert commutes(stem_of(kind, norm_cfg, train)) == expected


def test_visible_equals_gathered_tokens():
    stem = stem_of().double()
    x = torch.randn(3, 3, 40, 64).double()  # padded to 48 x 64
    index = torch.rand(3, 12).argsort(dim=1)[:, :5]
    expected = stem(x)[0].gather(1, index[..., None].expand(-1, -1, 16))
    tokens = stem.visible(x, index)
    torch.testing.assert_close(tokens, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize('kind', [HMLPStem, ConvStem])
def test_grid_equals_patch_embed_of_mmpretrain(kind):
    size = (33, 48)
    stem = kind(16, size)
    theirs = MODELS.build(dict(vit(1, size), patch_size=16)).patch_embed
    x = torch.randn(2, 3, *size)
    (tokens, hw), (patches, grid) = stem(x), theirs(x)
    assert (tokens.shape, hw) == (patches.shape, grid)
    assert hw == stem.init_out_size == theirs.init_out_size


@pytest.mark.parametrize(
    'stem, maps, printed',
    [
        (HMLP, ((192, 56), (192, 28), (768, 14)), 17.73),
        (CONV, ((96, 112), (192, 56), (384, 28), (768, 14)), 19.07),
    ],
    ids=str,
)
def test_gflops_equal_table_7(stem, maps, printed):
    backbone = dict(vit(img_size=224, patch_size=16, stem=stem), arch='base')
    head = dict(type='LinearClsHead', num_classes=1000, in_channels=768)
    model = dict(type='ImageClassifier', backbone=backbone, head=head)
    # the paper counts 5 per norm element; we count 1, and 0 for BatchNorm
    norms = 4 * 25 * 197 * 768 + 5 * sum(c * side**2 for c, side in maps)
    flops = count_config(model).flops + norms
    assert round(flops / 1e9, 2) == printed


def test_convolutions_keep_initialization_of_torch():
    model = MODELS.build(vit(1, patch_size=16, stem=HMLP))
    start = {k: v.clone() for k, v in model.patch_embed.state_dict().items()}
    model.init_weights()
    for name, value in model.patch_embed.state_dict().items():
        assert torch.equal(value, start[name]), name


def test_frozen_stages_freeze_stem_and_statistics():
    model = MODELS.build(vit(2, patch_size=16, stem=HMLP, frozen_stages=1))
    stem = model.patch_embed
    assert model.stride == (16, 16)
    assert not any(p.requires_grad for p in stem.parameters())
    mean = stem.projection[1].running_mean
    before = mean.clone()
    model.train()(torch.randn(4, 3, 32, 32))
    assert torch.equal(mean, before)
    assert all(p.requires_grad for p in model.layers[1].parameters())
    assert not any(p.requires_grad for p in stem.parameters())


RELEASED, OURS = 'patch_embed.proj.', 'projection.'


@pytest.mark.parametrize(
    'case', cases('hmlp_stem'), ids=lambda case: case['name']
)
def test_stem_and_training_step_equal_public_code(case):
    sizes = dict(embed_dims=case['embed_dim'], img_size=case['img_size'])
    stem = MODELS.build(dict(STEMS[case['stem']], **sizes)).double()
    state = {k.replace(RELEASED, OURS): v for k, v in weights(case).items()}
    stem.load_state_dict(state)
    x, expect = images(case), case['expect']
    tokens, _ = stem.eval()(x)
    assert close(sums(tokens), expect['tokens'])
    assert close(tokens[0, 0].detach(), expect['first_token'])
    tokens, _ = stem.train()(x)
    assert close(sums(tokens), expect['tokens_train'])
    squares = tokens.square().flatten()
    ramp = torch.arange(1, len(squares) + 1).to(squares) / len(squares)
    value = (squares * ramp).mean()
    assert close(value.detach(), expect['train_value'])
    value.backward()
    check_gradients(stem, expect['grad_norm'], 'backbone.patch_embed.')
    buffers = dict(stem.named_buffers())
    for key, theirs in expect.get('running_after', {}).items():
        assert close(sums(buffers[key.replace(RELEASED, OURS)]), theirs), key
