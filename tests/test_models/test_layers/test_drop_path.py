# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Stochastic depth drops branches and samples independently."""

import pytest
import torch
from branches import looped, parallel, tokens
from torch import nn

from mmclca.models.layers import parallel as parallel_layers
from mmclca.models.layers.parallel import kept_branches


def keep(monkeypatch, *masks):
    """Replace the random masks (B, n) of attention and FFN."""
    masks = [torch.tensor(mask, dtype=torch.float64) for mask in masks]
    monkeypatch.setattr(
        parallel_layers, 'kept_branches', lambda *_: masks.pop(0)
    )


def test_dropping_one_branch_keeps_the_others(monkeypatch):
    dropped = 1
    settings = dict(layer_scale_init_value=0.1, drop_path_rate=1e-15)
    layer, x = parallel(3, **settings), tokens()
    mask = [[float(branch != dropped) for branch in range(3)]] * len(x)
    keep(monkeypatch, mask, mask)
    others = [one for b, one in enumerate(layer.branches) if b != dropped]
    out = layer.train()(x)
    expected = looped([one.eval() for one in others], x)
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-12)


def drop_slowly(x, parts, mask):
    """Add the kept residuals, times 1 / (1 - 0.75), to each sample."""
    kept = torch.tensor(mask, dtype=x.dtype).T[:, :, None, None]
    residuals = torch.stack([part(x) for part in parts])
    return x + 4 * (kept * residuals).sum(dim=0)


def test_samples_and_halves_drop_branches_independently(monkeypatch):
    layer, x = parallel(2, drop_path_rate=0.75).train(), tokens()
    masks = [[1, 1], [1, 0], [0, 0]], [[0, 1], [0, 0], [1, 0]]
    keep(monkeypatch, *masks)
    out = layer(x)
    branches = layer.eval().branches
    attentions = [nn.Sequential(one.ln1, one.attn) for one in branches]
    ffns = [nn.Sequential(one.ln2, one.ffn.layers) for one in branches]
    expected = drop_slowly(x, attentions, masks[0])
    expected = drop_slowly(expected, ffns, masks[1])
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-12)


def test_kept_branches_are_independent_with_expected_mean():
    kept = kept_branches(torch.empty(20000, 1, 1), branches=3, drop_prob=0.2)
    assert kept.shape == (20000, 3) and set(kept.unique().tolist()) == {0, 1}
    assert kept.mean(dim=0).tolist() == pytest.approx([0.8] * 3, abs=0.015)
    among_branches = torch.corrcoef(kept.T) - torch.eye(3)
    assert among_branches.abs().max() < 0.03
    among_samples = torch.corrcoef(torch.stack((kept[:-1], kept[1:]))[:, :, 0])
    assert among_samples[0, 1].abs() < 0.03


def test_layer_is_identity_if_all_branches_are_dropped():
    layer, x = parallel(2, drop_path_rate=1.0).train(), tokens()
    assert torch.equal(layer(x), x)
