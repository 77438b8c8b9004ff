# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Features of frozen networks."""

import frozen
import pandas as pd
import pytest
import torch

from mmclca.evaluation.cost import count_config


def test_frozen_config_has_normalization_tokens_and_size():
    one = frozen.Frozen('vit-tiny-p16', 'EViT', 0.5, img_size=128)
    config = one.config(range(9))
    assert config.model.data_preprocessor.mean[0] == 127.5
    tokens = [65] * 3 + [34] * 3 + [19] * 3
    assert count_config(config.model).tokens == tokens
    steps = config.test_dataloader.dataset.pipeline
    assert steps[2]['crop_size'] == (128, 128)


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
def test_frozen_features_are_read_by_token(
    shared, tmp_path, monkeypatch, method, keep_rate
):
    monkeypatch.setattr(frozen, 'KEPT', tmp_path)
    monkeypatch.setattr(frozen, 'WEIGHTS', shared / 'weights')
    few = few_of_leaf40(shared / 'data')
    monkeypatch.setattr(frozen, 'photos', lambda: dict(some=few))
    one = frozen.Frozen('deit-tiny-p16', method, keep_rate)
    cls, average, weighted, last, std = one.features('some').unbind(2)
    assert cls.shape == (len(few), 12, 192) and std.min() > 0
    # no reduction yet: one token per patch
    for other in (weighted, last):
        assert torch.allclose(average[:, :3], other[:, :3], atol=2e-3)
    gone = (weighted - last)[:, 3:].abs().amax()
    assert (gone > 0.1) == (method == 'EViT')
