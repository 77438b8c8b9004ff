# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Stochastic depth: rates of layers, and each branch on its own."""

import pytest
import torch
from branches import looped, parallel, tokens
from mmcv.cnn.bricks import DropPath
from small_models import vit
from torch import nn

from mmclca.models.layers import parallel as parallel_layers
from mmclca.models.layers.parallel import kept_branches
from mmclca.registry import MODELS


def rates(**options):
    backbone = MODELS.build(vit(3, drop_path_rate=0.2, **options))
    return [
        {m.drop_prob for m in layer.modules() if isinstance(m, DropPath)}
        for layer in backbone.layers
    ]


@pytest.mark.parametrize('branches', [1, 2])
def test_rates_rise_or_are_the_same_in_all_layers(branches):
    rising = rates(branches=branches)
    assert rising == [{0.0}, {0.1}, {0.2}]
    uniform = rates(branches=branches, drop_path_mode='uniform')
    assert uniform == [{0.2}] * 3
    assert all(type(rate) is float for (rate,) in rising + uniform)


def keep(monkeypatch, *masks):
    """Have the masks (B, n) of the halves of a layer be these, in turn."""
    masks = [torch.tensor(mask, dtype=torch.float64) for mask in masks]
    monkeypatch.setattr(
        parallel_layers, 'kept_branches', lambda *_: masks.pop(0)
    )


@pytest.mark.parametrize('dropped', [0, 1, 2])
def test_without_one_branch_the_others_remain(monkeypatch, dropped):
    settings = dict(layer_scale_init_value=0.1, drop_path_rate=1e-15)
    layer, x = parallel(3, **settings), tokens()
    mask = [[float(branch != dropped) for branch in range(3)]] * len(x)
    keep(monkeypatch, mask, mask)
    others = [one for b, one in enumerate(layer.branches) if b != dropped]
    made = layer.train()(x)
    right = looped([one.eval() for one in others], x)
    torch.testing.assert_close(made, right, rtol=0, atol=1e-12)


def dropped(x, parts, mask):
    """Sample by sample, of the residuals those that are kept, 4 times."""
    return torch.cat(
        [
            sample
            + 4
            * sum(
                part(sample)
                for part, kept in zip(parts, row, strict=True)
                if kept
            )
            for sample, row in zip(x.split(1), mask, strict=True)
        ]
    )


def test_samples_and_halves_drop_branches_of_their_own(monkeypatch):
    """And what is kept is scaled up by 1 / (1 - rate)."""
    layer, x = parallel(2, drop_path_rate=0.75).train(), tokens()
    masks = [[1, 1], [1, 0], [0, 0]], [[0, 1], [0, 0], [1, 0]]
    keep(monkeypatch, *masks)
    made = layer(x)
    branches = layer.eval().branches
    attentions = [nn.Sequential(one.ln1, one.attn) for one in branches]
    ffns = [nn.Sequential(one.ln2, one.ffn.layers) for one in branches]
    right = dropped(dropped(x, attentions, masks[0]), ffns, masks[1])
    torch.testing.assert_close(made, right, rtol=0, atol=1e-12)


def test_masks_are_independent_with_the_right_mean():
    kept = kept_branches(torch.empty(20000, 1, 1), branches=3, drop_prob=0.2)
    assert kept.shape == (20000, 3) and set(kept.unique().tolist()) == {0, 1}
    assert kept.mean(dim=0).tolist() == pytest.approx([0.8] * 3, abs=0.015)
    among_branches = torch.corrcoef(kept.T) - torch.eye(3)
    assert among_branches.abs().max() < 0.03
    among_samples = torch.corrcoef(torch.stack((kept[:-1], kept[1:]))[:, :, 0])
    assert among_samples[0, 1].abs() < 0.03


def test_all_dropped_leaves_the_tokens_as_they_are():
    layer, x = parallel(2, drop_path_rate=1.0).train(), tokens()
    assert torch.equal(layer(x), x)
