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


def step_seconds(config: Config, device: str) -> float:
    """Seconds of a step of a training, images read in the same process.

    Args:
        config (Config): Of :func:`training_config`.
        device (str): Where it runs.
    """
    init_default_scope(config.default_scope)
    loader = config.train_dataloader
    dataset = DATASETS.build(loader.dataset)
    batch = [i % len(dataset) for i in range(loader.batch_size)]
    [dataset[i] for i in batch]  # from now on, images are in the cache
    with torch.device(device):
        model = MODELS.build(config.model)
    setting = Setting(device=device, batch=loader.batch_size)
    images = setting.images(model.backbone.img_size)
    step = training_step(model, images, setting)
    step()  # the first one is slower
    began = time.perf_counter()
    for _ in range(STEPS):
        default_collate([dataset[i] for i in batch])
        step().item()
    return (time.perf_counter() - began) / STEPS
