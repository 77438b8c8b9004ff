# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Milliseconds of many models at batch 1, interleaved."""

import sys
from contextlib import redirect_stdout

from mmengine.utils import ProgressBar

from mmclca.benchmark.one_image import median_milliseconds, steps_of
from mmclca.benchmark.setting import Setting


def milliseconds(models: dict[str, dict], rounds: int) -> dict[str, float]:
    """Median time of an image, on the CPU, of models with random weights.

    Args:
        models (dict[str, dict]): Configs of classifiers by name.
        rounds (int): Timed passes of each.

    Returns:
        dict[str, float]: Milliseconds by name.
    """
    setting, warm_up = Setting(batch=1), 3
    with redirect_stdout(sys.stderr):
        steps = steps_of(models, setting)
    bar = ProgressBar(len(models) * (rounds + warm_up), file=sys.stderr)
    found = median_milliseconds(
        steps, setting, rounds, warm_up=warm_up, after_each=bar.update
    )
    return {name: round(value, 3) for name, value in found.items()}
