# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A training of a fit: quiet, and resumed after an interruption."""

import os
from pathlib import Path
from uuid import uuid4

import torch
from mmengine.config import Config

from mmclca.checkpoints.resuming import newest_checkpoint, resume
from mmclca.datasets.photographs import Photographs
from mmclca.datasets.photographs.lists import lines_of_lists, write_lists
from mmclca.engine.runner import build_runner, set_loader_defaults, use_amp

from .job import Job
from .progress import BarHook
from .recipe import training_config

WORKERS = 2  # that read photographs, where there are as many processors


def config_of(
    job: Job, photographs: Photographs, start: Path, work_dir: Path
) -> Config:
    """What is trained on some photographs.

    Args:
        job (Job): The fit.
        photographs (Photographs): Those to learn from.
        start (Path): Checkpoint of their probe.
        work_dir (Path): For lists, logs and checkpoints.
    """
    lists = lines_of_lists(photographs, work_dir, relative=False)
    write_lists(lists, force=True)
    return training_config(
        job.config,
        start,
        {file.stem: file for file in lists},
        work_dir,
        _class_weights(job, photographs),
        min(WORKERS, os.cpu_count() - 1),
    )


def _class_weights(job: Job, photographs: Photographs) -> list[float] | None:
    if job.facts['call']['class_weights'] is None:
        return None
    counts = torch.tensor(photographs.labels).bincount()
    return (len(photographs.labels) / (len(counts) * counts)).tolist()


def train(job: Job, config: Config, amp: str | None, title: str) -> Path:
    """Train, from where an earlier run was interrupted.

    Args:
        job (Job): The fit.
        config (Config): Of :func:`config_of`.
        amp (str, optional): 'bf16' for mixed precision, else float32.
        title (str): What the progress bar says.

    Returns:
        Path: The last checkpoint.
    """
    config.experiment_name = uuid4().hex  # mmengine keeps things by it
    resume(config, 'auto')
    if amp is not None:
        use_amp(config, amp)
    set_loader_defaults(config, no_pin_memory=False)
    runner = build_runner(config)
    runner.register_hook(BarHook(job.log.bars, title))
    runner.train()
    path, _ = newest_checkpoint(Path(config.work_dir))
    return Path(path)
