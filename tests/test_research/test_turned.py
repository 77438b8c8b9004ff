# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Study of turned photos, on random features."""

import pandas as pd
import pytest
import torch
import turned

from mmclca.apis.probe import LabeledFeatures, out_of_fold
from mmclca.apis.probe.classifiers import fit_linear


class LinearProbe:
    """Probe without a network."""

    def fit(self, views, labels, classes, folds):
        data = LabeledFeatures(views, labels, len(classes))
        cv = out_of_fold(data, folds=folds)
        fitted = fit_linear(data, cv.classifier, cv.setting)
        self.scores = lambda x: fitted.scores(x) / cv.temperature
        return cv


@pytest.fixture(scope='module')
def table():
    """Rows for photos whose classes are elsewhere after a turn."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(3).repeat_interleave(20)
    centers = torch.randn(4, 3, 32, generator=generator)
    noise = 0.3 * torch.randn(60, 4, 32, generator=generator)
    views = centers[:, labels].transpose(0, 1) + noise
    zoomed = views[:, :1] + 0.1 * torch.randn(60, 3, 32, generator=generator)
    tested = torch.arange(60) % 2 == 1
    dataset = turned.TurnedPhotos(labels, tested, zoomed, views)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(turned, 'COUNTS', (5,))
        patch.setattr(turned, 'NUM_DRAWS', 2)
        rows = [*turned.measure(LinearProbe(), dataset)]
    return pd.DataFrame(rows).drop(columns='seed').groupby('method').mean()


def test_turned_views_in_training_help_turned_photos(table):
    now, turned_too = table.loc['as now'], table.loc['turned and zoomed']
    assert turned_too.turned > now.turned + 10
    assert turned_too.renamed < now.renamed
    assert turned_too.flagged_turned < now.flagged_turned


def test_averaged_views_give_one_prediction_for_all_directions(table):
    averaged = table.loc['averaged']
    assert averaged.renamed == 0
    assert averaged.upright == averaged.turned
    assert averaged.flagged == averaged.flagged_turned
