# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch
from torch import nn

from mmclca.utils import throughput
from mmclca.utils.throughput import images_per_second, seconds_in_turns


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


class Product(nn.Linear):
    """Remembers the number format that it computed in."""

    def forward(self, x):
        out = super().forward(x)
        self.dtype = out.dtype
        return out


def test_mixed_precision():
    models = dict(one=Product(4, 4), two=Product(4, 4))
    inputs = torch.zeros(2, 4)
    for amp, dtype in ((None, torch.float32), (torch.bfloat16,) * 2):
        seconds = seconds_in_turns(models, inputs, rounds=2, amp=amp)
        assert {name: len(v) for name, v in seconds.items()} == dict(
            one=2, two=2
        )
        assert {model.dtype for model in models.values()} == {dtype}
