# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Accuracy from cues that should not tell the class."""

import numpy as np
import pytest
import torch

from mmclca.datasets.grouped_splits import GroupedSplits
from mmclca.evaluation import shortcut_probe
from mmclca.evaluation.shortcut_probe import probe_cues

LABELS = torch.arange(4).repeat_interleave(8)


def probe(cues, groups=None):
    groups = torch.arange(32) if groups is None else groups
    splits = GroupedSplits(LABELS, groups.tolist()).folds(4, seed=0)
    return probe_cues(cues, LABELS, groups, [*splits])


def noise(seed=0):
    return torch.randn(32, 3, generator=torch.Generator().manual_seed(seed))


def test_facts_that_go_with_classes_are_noticed():
    probed = probe(10 * LABELS[:, None] + noise())
    assert probed.accuracy > 0.9 > probed.highest
    assert 0.15 < probed.chance < 0.35


def test_random_facts_are_rarely_above_all_permutations():
    above = [
        probed.accuracy > probed.highest
        for probed in (probe(noise(seed)) for seed in range(40))
    ]
    assert np.mean(above) <= 0.1


def test_groups_are_permuted_as_a_whole():
    groups = torch.arange(16).repeat_interleave(2)
    cues = 3.0 * noise()[groups]  # same for both photos of a group
    assert probe(cues, groups).accuracy <= probe(cues, groups).highest


@pytest.mark.parametrize('cues', [torch.ones(32, 2), torch.empty(32, 0)])
def test_equal_facts_are_not_probed(cues):
    assert probe(cues) is None


def test_more_photos_are_sampled(monkeypatch):
    monkeypatch.setattr(shortcut_probe, 'MAX_PHOTOS', 16)
    probed = probe(10 * LABELS[:, None] + noise())
    assert probed.accuracy * 16 == pytest.approx(round(probed.accuracy * 16))
