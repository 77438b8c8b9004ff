# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
import torch

from mmclca.benchmark import Setting, interleaved, interleaved_seconds
from mmclca.benchmark.interleaved import median_milliseconds


@pytest.fixture
def clock(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(interleaved.time, 'perf_counter', lambda: clock[0])
    return clock


def test_turns_medians_and_warm_up(clock):
    log = []

    def taking(name, *seconds):
        def step():
            log.append(name)
            clock[0] += next(left)

        left = iter(seconds)
        return step

    steps = dict(
        fast=taking('fast', 9, 9, 1, 1, 7), slow=taking('slow', 0, 0, 2, 4, 2)
    )
    times = median_milliseconds(steps, Setting(), rounds=3)
    assert times == dict(fast=1000, slow=2000)
    assert log == ['fast', 'slow'] * 5


def test_every_pass_is_told_and_only_passes_are_timed(clock):
    told = []

    def step():
        clock[0] += 1

    def after_each():
        clock[0] += 100
        told.append(len(told))

    seconds = interleaved_seconds(
        dict(a=step, b=step), Setting(), 2, warm_up=1, after_each=after_each
    )
    assert seconds == dict(a=[1, 1], b=[1, 1])
    assert told == list(range(6))


def test_time_of_other_processes_does_not_count(clock):
    clock[0] = -1.0  # the clock's time stands still
    of_cpu = Setting(cpu_time=True)
    assert interleaved.seconds_of(lambda: sum(range(10**5)), of_cpu) > 0
    assert interleaved.seconds_of(lambda: None, Setting()) == 0


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
    seconds = interleaved_seconds(steps, Setting('cuda'), rounds=5)
    assert min(seconds['many']) > 5 * min(seconds['one'])
