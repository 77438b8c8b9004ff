# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest

from mmclca.fitting import improving
from mmclca.fitting.improving import errors_removed


@pytest.fixture
def measured(monkeypatch):
    table = (
        (0.1, 0.6, 0.8),  # half of the errors
        (0.1, 0.8, 0.8),
        (0.5, 0.8, 0.85),
    )
    monkeypatch.setattr(improving, 'MEASURED', table)


@pytest.mark.parametrize(
    'accuracy, keep_rate, removed',
    [
        *((0.6, 0.1, 0.5), (0.8, 0.1, 0), (0.7, 0.1, 0.25)),
        *((0.2, 0.1, 0.5), (0.9, 0.5, 0.25), (0.6, 0.3, 0.375)),
        (0.6, 1.0, 0.25),
    ],
)
def test_between_what_was_measured(measured, accuracy, keep_rate, removed):
    assert errors_removed(accuracy, keep_rate) == pytest.approx(removed)
