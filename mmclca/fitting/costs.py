# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What models cost, counted, and timed on this machine."""

from collections.abc import Mapping

import torch

from mmclca.benchmark.interleaved import median_milliseconds, steps_of
from mmclca.benchmark.machine import cpu_name
from mmclca.benchmark.setting import Setting
from mmclca.evaluation.cost import count_config

ROUNDS = 9


def gmacs(model: dict) -> float:
    """1e9 multiply-accumulates of one image.

    Args:
        model (dict): Config of a classifier.
    """
    return count_config(model).flops / 1e9


def milliseconds(
    models: Mapping[str, dict], device: str, rounds: int = ROUNDS
) -> dict[str, float]:
    """Median time of one image, interleaved, at batch 1.

    Args:
        models (Mapping[str, dict]): Configs of classifiers by name.
        device (str): Where they run.
        rounds (int): Timed passes of each. Defaults to ``ROUNDS``.
    """
    setting = _setting(device)
    return median_milliseconds(steps_of(models, setting), setting, rounds)


def _setting(device: str) -> Setting:
    return Setting(device=device, threads=torch.get_num_threads(), batch=1)


def machine_name(device: str) -> str:
    """Where milliseconds were measured, in words.

    Args:
        device (str): Where the models ran.
    """
    setting = _setting(device)
    if setting.on_gpu:
        return torch.cuda.get_device_name(device)
    threads = f'{setting.threads} thread{"s" * (setting.threads > 1)}'
    return f'{cpu_name()}, {threads}'
