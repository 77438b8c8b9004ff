# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Memory of a probe on many images."""

import pytest
import torch
from peak_memory import peak_bytes_of_call

from mmclca.apis.probe import (
    LabeledFeatures,
    classifiers,
    fit_linear,
    folds,
    learning_curve,
    leave_out,
    out_of_fold,
    ridge,
    solvers,
)

NUMBER, WIDTH, MANY, CHUNK = 2000, 300, 500, 100


@pytest.fixture
def data(monkeypatch):
    """Features of images which count as many."""
    for module in (classifiers, leave_out):
        monkeypatch.setattr(module, 'MAX_DOUBLE_ROWS', MANY)
    for module in (ridge, solvers):
        monkeypatch.setattr(module, 'MAX_CHUNK', CHUNK)
    monkeypatch.setattr(leave_out, 'MAX_RESIDUAL_ROWS', MANY)
    for name in ('MAX_NESTED', 'MAX_REPEATED'):
        monkeypatch.setattr(folds, name, MANY)
    features = torch.randn(NUMBER, WIDTH)
    return LabeledFeatures(features, torch.arange(NUMBER) % 3, 3)


@pytest.mark.parametrize('function', [out_of_fold, fit_linear])
def test_many_images_take_little_more_than_a_copy(data, function):
    copy = data.features.nbytes
    squares = 8 * WIDTH**2
    peak = peak_bytes_of_call(lambda: function(data), [data.features])
    assert copy < peak < 1.5 * copy + 5 * squares


def test_learning_curve_of_many_images_takes_three_copies(data):
    """Training images, and one feature subset before and after centering."""
    cross_validated = out_of_fold(data)
    peak = peak_bytes_of_call(
        lambda: learning_curve(cross_validated), [data.features]
    )
    assert peak < 3 * data.features.nbytes + 5 * 8 * WIDTH**2
