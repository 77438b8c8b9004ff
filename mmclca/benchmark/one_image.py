# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""How long models take for an image, interleaved."""

from collections.abc import Callable, Mapping
from statistics import median

import torch

from mmclca.registry import MODELS

from .interleaved import interleaved_seconds
from .setting import Setting
from .steps import inference_step


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
