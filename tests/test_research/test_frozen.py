# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Frozen networks: features, training subsets and accuracies."""

from collections import Counter

import few_photographs
import frozen
import pandas as pd
import pytest
import reducers
import torch
from mmengine.config import Config
from tiny_run import ROOT

from mmclca.evaluation.cost import count_config

GRID = Config.fromfile(ROOT / 'configs/sweeps/few_photographs_frozen.py')
NUM_DRAWS = 10  # in configs/few_shot/draws


@pytest.mark.parametrize('dataset', ['leaf40', 'leaf40_white'])
def test_stored_splits_are_stratified_disjoint_and_complete(dataset):
    folder = ROOT / 'configs/few_shot/draws' / dataset
    draws = [
        [frozen.read_list(folder / f'd{i}{end}.txt') for end in ('', '_test')]
        for i in range(NUM_DRAWS)
    ]
    everything = {**draws[0][0], **draws[0][1]}
    assert len(everything) == 442
    for train, test in draws:
        assert Counter(train.values()) == dict.fromkeys(range(40), 3)
        assert not train.keys() & test.keys()
        assert {**train, **test} == everything
    assert len({tuple(sorted(train)) for train, _ in draws}) == NUM_DRAWS


@pytest.mark.parametrize(
    'settings, tokens',
    [
        (dict(method='EViT', keep_rate=0.5), [197] * 3 + [100] * 3 + [52] * 3),
        (dict(img_size=128), [65] * 9),
    ],
)
def test_frozen_config_has_normalization_tokens_and_size(settings, tokens):
    one = frozen.Frozen('vit-tiny-p16', **settings)
    config = one.config(range(9))
    assert config.model.data_preprocessor.mean[0] == 127.5
    assert count_config(config.model).tokens == tokens
    steps = config.test_dataloader.dataset.pipeline
    assert steps[2]['crop_size'] == (one.img_size,) * 2


def test_frozen_names_are_unique():
    names = [frozen.Frozen(**x).name for x in GRID.networks]
    assert len({*names}) == len(names) <= 200


def few_of_leaf40(data):
    """Return two training and two test photos per class, three classes."""
    rows = [
        (str(data / 'leaf40' / path), label, split)
        for split in ('train', 'test')
        for path, label in sorted(
            frozen.read_list(data / f'leaf40/{split}.txt').items()
        )
    ]
    table = pd.DataFrame(rows, columns=['path', 'label', 'split'])
    rank = table.groupby(['split', 'label']).cumcount()
    few = table[(table.label < 3) & (rank < 2)]
    return few.reset_index(drop=True)


@pytest.mark.parametrize('method, keep_rate', [('EViT', 0.5), ('ATC', 0.5)])
@pytest.mark.slow
def test_frozen_features_are_read_and_compared(
    shared, tmp_path, monkeypatch, method, keep_rate
):
    monkeypatch.setattr(frozen, 'KEPT', tmp_path)
    monkeypatch.setattr(frozen, 'WEIGHTS', shared / 'weights')
    few = few_of_leaf40(shared / 'data')
    monkeypatch.setattr(frozen, 'photographs', lambda: dict(some=few))
    one = frozen.Frozen('deit-tiny-p16', method, keep_rate)
    cls, average, weighted, last, std = one.features('some').unbind(2)
    assert cls.shape == (len(few), 12, 192) and std.min() > 0
    # no reduction yet: one token per patch
    for other in (weighted, last):
        assert torch.allclose(average[:, :3], other[:, :3], atol=2e-3)
    gone = (weighted - last)[:, 3:].abs().amax()
    assert (gone > 0.1) == (method == 'EViT')
    found = few_photographs.measured(one, 'some', few, [1])
    assert all(0 <= x <= 100 for draws in found.values() for x in draws)
    monkeypatch.setattr(reducers, 'photographs', frozen.photographs)
    compared = reducers.compare(one, 'some')
    assert 0.5 < compared['cosine'] < 0.999 and compared['layers'] > 50
    compared = reducers.compare(frozen.Frozen('deit-tiny-p16'), 'some')
    assert compared['cosine'] > 0.9999 and compared['agreement'] == 100


def test_draws_are_limited_by_class_size():
    labels = torch.tensor([0, 0, 0, 0, 1, 1, 0, 1])
    known = torch.tensor([1, 1, 1, 1, 1, 1, 0, 0]).bool()
    found = [*few_photographs.draws(labels, known, 3)]
    assert len(found) == few_photographs.NUM_DRAWS
    assert all(Counter(labels[x].tolist()) == {0: 3, 1: 2} for x in found)
    assert len({tuple(x.tolist()) for x in found}) > 1
