# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
import torch
from mmpretrain.models.utils import LayerScale, build_norm_layer
from torch import nn

from mmclca.models.layers.resmlp_layer import Affine, split_affine


def test_it_begins_as_the_identity_to_the_bit():
    affine = build_norm_layer(dict(type='mmclca.Affine', eps=1e-6), 8)
    x = torch.randn(2, 5, 8)
    assert torch.equal(affine(x), x)


def test_a_factor_and_a_shift_a_channel():
    affine = Affine(2, alpha=0.5)
    affine.beta.data = torch.tensor([0.0, 3.0])
    assert affine(torch.tensor([[2.0, 4.0]])).tolist() == [[1.0, 5.0]]


@pytest.mark.parametrize('kind', [Affine, LayerScale, nn.LayerNorm])
def test_the_map_that_is_split_off(kind):
    part = kind(8).double()
    for param in part.parameters():
        nn.init.normal_(param)
    x = torch.randn(2, 5, 8).double()
    bare, alpha, beta = split_affine(part)
    assert not [*bare.parameters()]
    torch.testing.assert_close(bare(x) * alpha + beta, part(x))
