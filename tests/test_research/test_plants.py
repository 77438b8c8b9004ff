# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Study of several photos per plant, on random features."""

import numpy as np
import pytest
import torch
from plants import PlantPhotos, measure

from mmclca.apis.probe import LabeledFeatures, out_of_fold
from mmclca.apis.probe.classifiers import fit_linear


class RandomFeatures:
    """Probe on features whose plants share half the noise."""

    def __init__(self, labels, plants):
        generator = torch.Generator().manual_seed(0)
        noise = torch.randn(1 + plants.max(), 16, generator=generator)
        single = torch.randn(len(labels), 16, generator=generator)
        centers = 3 * torch.nn.functional.one_hot(labels, 16)
        self.read = centers + noise[plants] + single

    def features(self, paths):
        return self.read[[*map(int, paths)]], {}

    def views(self, paths):
        return self.features(paths)[0][:, None], {}

    def fit(self, views, labels, classes, groups):
        data = LabeledFeatures(views, labels, len(classes), groups)
        cv = out_of_fold(data)
        fitted = fit_linear(data, cv.classifier, cv.setting)
        self.scores = lambda x: fitted.scores(x) / cv.temperature
        return cv


@pytest.fixture(scope='module')
def table():
    labels = torch.arange(4).repeat_interleave(80)
    plants = torch.arange(320) // 4
    paths = [*map(str, range(320))]
    everything = np.ones(320, bool)
    dataset = PlantPhotos(paths, labels, plants.numpy(), everything)
    return measure(RandomFeatures(labels, plants), dataset, per_class=10)


def test_more_photos_give_a_higher_accuracy(table):
    assert [*table.photos] == [1, 2, 3]
    assert table.accuracy.is_monotonic_increasing
    assert (table.stated - table.accuracy).abs().max() < 10


def test_measured_dependence_is_between_its_limits(table):
    last = table.iloc[-1]
    assert last['mean: excess'] < last['measured: excess']
    assert last['measured: excess'] < last['independent: excess']
    # a single photo does not depend on it
    first = table.iloc[0]
    assert first['mean: error'] == pytest.approx(first['independent: error'])
