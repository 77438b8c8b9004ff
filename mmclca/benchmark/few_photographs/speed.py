# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Milliseconds of many models at batch 1, interleaved."""

import sys
from contextlib import redirect_stdout

import numpy as np
from mmengine.utils import ProgressBar

from mmclca.benchmark.interleaved import Clock, interleaved_seconds
from mmclca.benchmark.setting import Setting
from mmclca.benchmark.steps import inference_step
from mmclca.registry import MODELS


def milliseconds(models: dict[str, dict], rounds: int) -> dict[str, float]:
    """Median time of an image, on the CPU, of models with random weights.

    Args:
        models (dict[str, dict]): Configs of classifiers by name.
        rounds (int): Timed passes of each.

    Returns:
        dict[str, float]: Milliseconds by name.
    """
    setting, warm_up = Setting(batch=1), 3
    steps = {}
    for name, config in models.items():
        with redirect_stdout(sys.stderr):
            model = MODELS.build(config)
        images = setting.images((config['backbone']['img_size'],) * 2)
        steps[name] = inference_step(model, images, setting)
    bar = ProgressBar(len(models) * (rounds + warm_up), file=sys.stderr)
    seconds = interleaved_seconds(
        steps, Clock(), rounds, warm_up, after_each=bar.update
    )
    return {
        name: round(1e3 * float(np.median(values)), 3)
        for name, values in seconds.items()
    }
