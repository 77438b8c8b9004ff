# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Training from a probe, as ``configs/few_shot`` does.

docs/results/few_photographs.md says what was tried. A training is quiet, and
resumed after an interruption.
"""

import math
import os
from collections.abc import Callable
from pathlib import Path
from statistics import median
from uuid import uuid4

import torch
from mmengine.config import Config
from mmengine.dataset import default_collate
from mmengine.registry import init_default_scope

from mmclca.benchmark import Setting, interleaved_seconds
from mmclca.benchmark.steps import training_step
from mmclca.checkpoints.resuming import newest_checkpoint, resume
from mmclca.datasets.photographs import Photographs
from mmclca.datasets.photographs.lists import lines_of_lists, write_lists
from mmclca.datasets.pipelines import evaluation_pipeline
from mmclca.engine.runner import build_runner, set_loader_defaults, use_amp
from mmclca.model_index import home
from mmclca.registry import DATASETS, MODELS

from .job import Job
from .screen import BarHook

RECIPE = 'lf-evit-kr50_deit-tiny-p16_1xb32-20e_leaf40-224px.py'
WORKERS = 2  # that read photographs, where there are as many processors
STEPS = 2  # that are timed
FASTER = 0.8  # of the time in float32, or bfloat16 is not worth it


def read_recipe() -> Config:
    """Return the config that the training was measured with."""
    return Config.fromfile(home() / 'configs/few_shot' / RECIPE)


def training_config(
    job: Job, photographs: Photographs, start: Path, work_dir: Path
) -> Config:
    """Return the config of training from the checkpoint of a probe."""
    recipe = read_recipe()
    lists = lines_of_lists(photographs, work_dir, relative=False)
    write_lists(lists, force=True)
    recipe.default_hooks.logger.interval = 10
    recipe.default_hooks.checkpoint.interval = 2
    names = ('train_cfg', 'optim_wrapper', 'param_scheduler', 'default_hooks')
    return Config(
        dict(
            {name: recipe[name] for name in names},
            default_scope='mmpretrain',
            model=_model(job, photographs, recipe.model.head.loss),
            load_from=str(start),
            work_dir=str(work_dir),
            train_dataloader=_loader(
                recipe.train_dataloader, work_dir, job.variant.img_size
            ),
            # kept in the checkpoint, which is how photographs are prepared
            test_dataloader=job.config.test_dataloader.to_dict(),
            test_cfg={},
            test_evaluator=dict(type='Accuracy'),
            visualizer=dict(type='UniversalVisualizer', vis_backends=[]),
            randomness=dict(seed=0),
        )
    )


def _model(job: Job, photographs: Photographs, loss: dict) -> dict:
    model = job.config.model.to_dict()
    # those that see all tokens: half of the cost, and as good without
    depth = len(model['backbone']['out_indices'])
    model['backbone']['frozen_stages'] = depth // 3
    model['head']['loss'] = loss
    if job.record.call['class_weights'] is not None:
        counts = torch.tensor(photographs.labels).bincount()
        weights = len(photographs) / (len(counts) * counts)
        loss['class_weight'] = weights.tolist()
    return model


def _loader(loader: dict, lists: Path, img_size: int) -> dict:
    """Have the loader of the recipe read the lists of a folder."""
    loader.pop('batch_sampler')
    loader.num_workers = min(WORKERS, os.cpu_count() - 1)
    loader.dataset.data_root = ''
    loader.dataset.ann_file = str(lists / 'train.txt')
    loader.dataset.classes = str(lists / 'classes.txt')
    cache, crop, *_ = loader.dataset.pipeline
    cache.transforms = evaluation_pipeline(img_size)[:2]  # once
    crop.crop_size = img_size
    return loader


def num_steps(config: Config, num_images: int) -> int:
    """Steps of a training with some photographs."""
    loader = config.train_dataloader
    images = max(num_images, loader.sampler.min_samples)
    return config.train_cfg.max_epochs * math.ceil(images / loader.batch_size)


def step_seconds(config: Config, device: str) -> tuple[float, str | None]:
    """Time a step of a training, and choose the quicker number format.

    None for float32: bfloat16 takes half the time where a processor has
    instructions for it.
    """
    init_default_scope(config.default_scope)
    steps = {amp: _step(config, device, amp) for amp in (None, 'bf16')}
    setting = Setting(device=device)
    times = interleaved_seconds(steps, setting, STEPS, warm_up=1)
    seconds = {amp: median(values) for amp, values in times.items()}
    amp = 'bf16' if seconds['bf16'] < FASTER * seconds[None] else None
    return seconds[amp], amp


def _step(config: Config, device: str, amp: str | None) -> Callable:
    """Make a step in a number format, which also reads photographs."""
    with torch.device(device):
        model = MODELS.build(config.model)
    loader = config.train_dataloader
    setting = Setting(device=device, batch=loader.batch_size, amp=amp)
    images = setting.images(model.backbone.img_size)
    step = training_step(model, images, setting)
    dataset = DATASETS.build(loader.dataset)

    def read_and_step():
        default_collate(
            [dataset[i % len(dataset)] for i in range(len(images))]
        )
        step()

    return read_and_step


def train(job: Job, config: Config, amp: str | None, title: str) -> Path:
    """Train, from where an earlier run was interrupted.

    In mixed precision of a format, None for float32. ``title`` is that of
    the progress bar. Gives the last checkpoint.
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
