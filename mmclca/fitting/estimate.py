# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""How long a training will take, told by two of its steps."""

import time

import torch
from mmengine.config import Config
from mmengine.dataset import default_collate
from mmengine.registry import init_default_scope

from mmclca.benchmark.setting import Setting
from mmclca.benchmark.steps import training_step
from mmclca.registry import DATASETS, MODELS

STEPS = 2
BF16 = 'bf16'
FASTER = 0.8  # of the time in float32, or bfloat16 is not worth it


def step_seconds(config: Config, device: str) -> tuple[float, str | None]:
    """Seconds of a step of a training, and the quicker number format.

    bfloat16 takes half the time where a processor has instructions for it.

    Args:
        config (Config): Of :func:`training_config`.
        device (str): Where it runs.

    Returns:
        tuple[float, str | None]: With the photographs read in between; None
        for float32, else 'bf16'.
    """
    init_default_scope(config.default_scope)
    reading = _reading_seconds(config.train_dataloader)
    plain, half = (_seconds(config, device, amp) for amp in (None, BF16))
    if half < FASTER * plain:
        return reading + half, BF16
    return reading + plain, None


def _reading_seconds(loader: dict) -> float:
    """Of a batch of photographs that were read once before."""
    dataset = DATASETS.build(loader['dataset'])
    batch = [i % len(dataset) for i in range(loader['batch_size'])]
    for i in {*batch}:
        dataset[i]
    began = time.perf_counter()
    default_collate([dataset[i] for i in batch])
    return time.perf_counter() - began


def _seconds(config: Config, device: str, amp: str | None) -> float:
    """Of a step in a number format, without reading."""
    with torch.device(device):
        model = MODELS.build(config.model)
    batch = config.train_dataloader.batch_size
    setting = Setting(device=device, batch=batch, amp=amp)
    step = training_step(
        model, setting.images(model.backbone.img_size), setting
    )
    step()  # the first one is slower
    began = time.perf_counter()
    for _ in range(STEPS):
        step().item()
    return (time.perf_counter() - began) / STEPS
