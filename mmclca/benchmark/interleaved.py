# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Interleaved timing: what disturbs one model disturbs all."""

import time
from collections.abc import Callable, Hashable, Mapping
from statistics import median

import torch

from mmclca.registry import MODELS

from .setting import Setting
from .steps import inference_step


def interleaved_seconds(
    steps: dict[Hashable, Callable[[], object]],
    setting: Setting,
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
        setting (Setting): The models' device, and whose time counts.
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
                seconds[name].append(seconds_of(steps[name], setting))
            except torch.OutOfMemoryError:
                del seconds[name]
            after_each()
    return {name: values[warm_up:] for name, values in seconds.items()}


def seconds_of(step: Callable[[], object], setting: Setting) -> float:
    """Seconds of one pass: of the GPU, of the clock, or of this process."""
    if setting.on_gpu:
        return _seconds_on_gpu(step, torch.device(setting.device))
    now = time.process_time if setting.cpu_time else time.perf_counter
    start = now()
    step()
    return now() - start


def _seconds_on_gpu(step: Callable[[], object], device: torch.device) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize(device)
    with torch.cuda.device(device):
        start.record()
        step()
        end.record()
    torch.cuda.synchronize(device)
    return start.elapsed_time(end) / 1e3


def steps_of(models: Mapping[str, dict], setting: Setting) -> dict:
    """A forward pass of each of some models, with random weights.

    Args:
        models (Mapping[str, dict]): Configs of classifiers by name.
        setting (Setting): How they run.
    """
    steps = {}
    for name, config in models.items():
        with torch.device(setting.device):
            model = MODELS.build(config).eval()
        images = setting.images(model.backbone.img_size)
        steps[name] = inference_step(model, images, setting)
    return steps


def median_milliseconds(
    steps: Mapping[str, Callable], setting: Setting, rounds: int, **more
) -> dict[str, float]:
    """Median time of each of some steps.

    Args:
        steps (Mapping[str, Callable]): The steps by name.
        setting (Setting): How they run.
        rounds (int): Timed passes of each.
        **more: ``warm_up`` and ``after_each`` of
            :func:`interleaved_seconds`.
    """
    seconds = interleaved_seconds(steps, setting, rounds, **more)
    return {name: 1e3 * median(values) for name, values in seconds.items()}
