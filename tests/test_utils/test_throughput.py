# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch
from torch import nn

from mmclca.utils import throughput
from mmclca.utils.throughput import images_per_second


class Model(nn.Module):
    """Takes the given seconds for each pass, on a clock of its own."""

    def __init__(self, name, seconds, log, clock):
        super().__init__()
        self.record = name, iter(seconds), log, clock

    def forward(self, x):
        name, seconds, log, clock = self.record
        assert not self.training and not torch.is_grad_enabled()
        log.append(name)
        clock[0] += next(seconds)
        return x


def test_turns_medians_and_warm_up(monkeypatch):
    clock, log = [0.0], []
    monkeypatch.setattr(throughput.time, 'perf_counter', lambda: clock[0])
    models = dict(
        fast=Model('fast', [9, 9, 1, 1, 7], log, clock),
        slow=Model('slow', [0, 0, 2, 4, 2], log, clock),
    )
    speeds = images_per_second(models, torch.zeros(8, 3, 2, 2), rounds=3)
    assert speeds == dict(fast=8.0, slow=4.0)
    assert log == ['fast', 'slow'] * 5
