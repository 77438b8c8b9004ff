# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Coverage of the interval of the false-alarm rate, on random features."""

import false_alarms
import torch


def test_intervals_hold_for_photos_like_the_training_photos(monkeypatch):
    monkeypatch.setattr(false_alarms, 'COUNTS', (5, 30))
    monkeypatch.setattr(false_alarms, 'NUM_DRAWS', 4)
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(4).repeat_interleave(20)
    centers = torch.nn.functional.one_hot(labels, 16)
    features = centers + 0.1 * torch.randn(80, 16, generator=generator)
    rows = [*false_alarms.measure(features, labels)]
    # with 30 of 20 photos per class, none remain to measure the rate
    assert [row['count'] for row in rows] == [5] * 4
    assert all(row['inside'] for row in rows)
    assert all(0 < row['width'] < 1 for row in rows)
