# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Stems in place of mmpretrain's, and CLS without a position."""

import pytest
import torch
from small_models import arch, build, images, vit
from torch import nn

from mmclca.models import TokenReductionViT
from mmclca.registry import MODELS


@MODELS.register_module()
class ToyStem(nn.Module):
    """What mmpretrain's PatchEmbed does, in another form."""

    def __init__(self, img_size, patch_size, in_channels, embed_dims, side=8):
        super().__init__()
        self.stride = (side, side)
        self.init_out_size = tuple(pixels // side for pixels in img_size)
        self.conv = nn.Conv2d(in_channels, embed_dims, side, side)

    def forward(self, x):
        x = self.conv(x)
        return x.flatten(2).transpose(1, 2), tuple(x.shape[-2:])


@pytest.mark.parametrize('size', [32, 48])
def test_a_stem_takes_the_place_of_the_patch_embedding(size):
    plain = build(vit(2)).double().eval()
    other = MODELS.build(vit(2, stem=dict(type='mmclca.ToyStem'))).double()
    state = plain.state_dict()
    for name in ('weight', 'bias'):
        value = state.pop(f'patch_embed.projection.{name}')
        state[f'patch_embed.conv.{name}'] = value
    other.load_state_dict(state)
    x = images(2, size).double()
    assert torch.equal(plain(x)[0], other.eval()(x)[0])
    assert other.stride == plain.stride == (8, 8)


def without_cls_pos(**options):
    return TokenReductionViT(
        arch(2), 32, 8, with_cls_pos=False, **options
    ).double()


@pytest.mark.parametrize('size', [32, 48])
def test_cls_without_a_position_is_cls_with_one_of_zeros(size):
    bare = without_cls_pos().eval()
    assert bare.pos_embed.shape == (1, 16, 16)
    with torch.no_grad():
        bare.pos_embed.normal_()
        bare.cls_token.normal_()
    zero = TokenReductionViT(arch(2), 32, 8).double().eval()
    row = torch.zeros(1, 1, 16, dtype=torch.float64)
    state = bare.state_dict()
    state['pos_embed'] = torch.cat((row, state['pos_embed']), dim=1)
    zero.load_state_dict(state)
    x = images(2, size).double()
    torch.testing.assert_close(bare(x)[0], zero(x)[0], rtol=0, atol=1e-12)


def test_its_own_weights_fit_another_size():
    here = without_cls_pos()
    there = TokenReductionViT(arch(2), 48, 8, with_cls_pos=False)
    there.load_state_dict(here.state_dict())
    assert there.pos_embed.shape == (1, 36, 16)


def test_it_is_frozen_with_the_embedding():
    frozen = without_cls_pos(frozen_stages=1)
    assert not frozen.pos_embed.requires_grad
    assert without_cls_pos().pos_embed.requires_grad


@pytest.mark.parametrize(
    'config',
    [
        dict(type='mmclca.CaiT', arch=arch(1), patch_size=8),
        dict(
            type='mmclca.PatchConvNet',
            arch=dict(embed_dims=16, num_layers=1),
            with_pos=True,
        ),
    ],
)
def test_positions_are_resized_on_load_and_for_other_images(config):
    model, larger = (build(dict(config, img_size=n)).eval() for n in (32, 64))
    larger.load_state_dict(model.state_dict())
    assert larger.pos_embed.shape[1] == 4 * model.pos_embed.shape[1]
    x = images(1, 64)
    torch.testing.assert_close(larger(x), model(x), atol=0.05, rtol=0)
