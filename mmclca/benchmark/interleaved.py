# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Interleaved timing: what disturbs one model disturbs all."""

import time
from collections.abc import Callable, Hashable
from statistics import median

import torch
from torch import Tensor, nn

from .setting import Setting
from .steps import inference_step


class Clock:
    """Marks points in time on the CPU.

    A mark is what :meth:`mark` returns; :meth:`seconds` is asked once all
    marks are made.
    """

    def mark(self):
        """The time, when what was asked for so far is done."""
        return time.perf_counter()

    def wait(self) -> None:
        """Let all that was asked for come to its end."""

    def seconds(self, start, end) -> float:
        """Seconds between two marks."""
        return end - start


class CPUTimeClock(Clock):
    """Counts the time of this process on the CPU: that in which other
    processes run instead does not count."""

    def mark(self):
        return time.process_time()


class CUDAClock(Clock):
    """Marks points in the work of a GPU, without holding it up.

    Args:
        device (str): The GPU.
    """

    def __init__(self, device: str):
        self.device = torch.device(device)

    def mark(self):
        with torch.cuda.device(self.device):
            event = torch.cuda.Event(enable_timing=True)
            event.record()
        return event

    def wait(self) -> None:
        torch.cuda.synchronize(self.device)

    def seconds(self, start, end) -> float:
        return start.elapsed_time(end) / 1e3


def clock_of(setting: Setting) -> Clock:
    """The clock of a setting's device."""
    if setting.on_gpu:
        return CUDAClock(setting.device)
    return CPUTimeClock() if setting.cpu_time else Clock()


def interleaved_seconds(
    steps: dict[Hashable, Callable[[], object]],
    clock: Clock,
    rounds: int = 15,
    warm_up: int = 2,
    after_each: Callable[[], object] = lambda: None,
) -> dict[Hashable, list[float]]:
    """Seconds of each pass of several models, interleaved.

    One pass of each model after the other (A B A B), so that a change of the
    machine's load meets all of them.

    Args:
        steps (dict[Hashable, Callable]): A pass of each model, without
            arguments, by its name.
        clock (Clock): That of the models' device.
        rounds (int): Timed passes of each model. Defaults to 15.
        warm_up (int): Passes before these that are not counted.
            Defaults to 2.
        after_each (Callable): Called after every pass, for a progress bar.

    Returns:
        dict[Hashable, list[float]]: A number a round, by the name. A model
        that ran out of a GPU's memory is not among them.
    """
    seconds = {name: [] for name in steps}
    for _ in range(warm_up + rounds):
        for name in tuple(seconds):
            try:
                seconds[name].append(seconds_of(steps[name], clock))
            except torch.OutOfMemoryError:
                del seconds[name]
            after_each()
    return {name: values[warm_up:] for name, values in seconds.items()}


def seconds_of(step: Callable[[], object], clock: Clock) -> float:
    """Seconds of one pass."""
    clock.wait()
    start = clock.mark()
    step()
    end = clock.mark()
    clock.wait()
    return clock.seconds(start, end)


def images_per_second(
    models: dict[str, nn.Module], inputs: Tensor, rounds: int = 15
) -> dict[str, float]:
    """Median inference speed of several models, interleaved.

    Args:
        models (dict[str, nn.Module]): Models that take a batch of images.
        inputs (Tensor): The batch, (B, 3, H, W), on the models' device.
        rounds (int): Timed passes of each model. Defaults to 15.

    Returns:
        dict[str, float]: Images per second by the name of the model.
    """
    setting = Setting(device=str(inputs.device), batch=len(inputs))
    steps = {
        name: inference_step(model, inputs, setting)
        for name, model in models.items()
    }
    seconds = interleaved_seconds(steps, clock_of(setting), rounds)
    return {k: len(inputs) / median(v) for k, v in seconds.items()}
