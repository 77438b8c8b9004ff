# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
import torch
from torch import nn

from mmclca.benchmark import (
    Setting,
    images_per_second,
    interleaved,
    interleaved_seconds,
)
from mmclca.benchmark.interleaved import Clock


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


@pytest.fixture
def clock(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(interleaved.time, 'perf_counter', lambda: clock[0])
    return clock


def test_turns_medians_and_warm_up(clock):
    log = []
    models = dict(
        fast=Model('fast', [9, 9, 1, 1, 7], log, clock),
        slow=Model('slow', [0, 0, 2, 4, 2], log, clock),
    )
    speeds = images_per_second(models, torch.zeros(8, 3, 2, 2), rounds=3)
    assert speeds == dict(fast=8.0, slow=4.0)
    assert log == ['fast', 'slow'] * 5


def test_every_pass_is_told_and_only_passes_are_timed(clock):
    told = []

    def step():
        clock[0] += 1

    def after_each():
        clock[0] += 100
        told.append(len(told))

    seconds = interleaved_seconds(
        dict(a=step, b=step), Clock(), 2, warm_up=1, after_each=after_each
    )
    assert seconds == dict(a=[1, 1], b=[1, 1])
    assert told == list(range(6))


def test_time_of_other_processes_does_not_count(clock):
    clock[0] = -1.0  # the clock's time stands still
    of_cpu = interleaved.clock_of(Setting(cpu_time=True))
    assert interleaved.seconds_of(lambda: sum(range(10**5)), of_cpu) > 0
    assert interleaved.seconds_of(lambda: None, Clock()) == 0


@pytest.mark.gpu
@pytest.mark.skipif(
    not torch.cuda.is_available(), reason='a CUDA device is missing'
)
def test_the_clock_of_a_gpu_waits_for_its_work():
    x = torch.randn(4096, 4096, device='cuda')

    def step(times):
        for _ in range(times):
            x @ x

    steps = dict(one=lambda: step(1), many=lambda: step(20))
    seconds = interleaved_seconds(
        steps, interleaved.CUDAClock('cuda'), rounds=5
    )
    assert min(seconds['many']) > 5 * min(seconds['one'])
