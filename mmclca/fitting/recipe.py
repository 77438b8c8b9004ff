# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""How a model is trained on from its probe: configs/few_shot in a wheel.

AdamW whose learning rate decays towards the first layers, warm-up and a
cosine, label smoothing, crops and flips, and epochs long enough however few
the photographs are. docs/results/few_photographs.md says what was tried.
"""

import math
from pathlib import Path

from mmengine.config import Config

from mmclca.datasets.pipelines import evaluation_pipeline
from mmclca.model_index import home

PIECES = home() / 'configs/_base_'
EPOCHS = 20  # those of few_shot_20e.py
BATCH, LEAST_AN_EPOCH = 32, 256
SMOOTHING = 0.1
CHECKPOINT_EVERY = 2  # epochs


def num_steps(num_images: int) -> int:
    """Steps of a training.

    Args:
        num_images (int): Photographs to learn from.
    """
    return EPOCHS * math.ceil(max(num_images, LEAST_AN_EPOCH) / BATCH)


def training_config(
    config: Config,
    start: Path,
    lists: dict[str, Path],
    work_dir: Path,
    class_weights: list[float] | None,
    workers: int,
) -> Config:
    """What a runner of mmengine trains.

    Args:
        config (Config): The classifier, see :func:`classifier_config`.
        start (Path): Checkpoint of its probe.
        lists (dict[str, Path]): Files of ``classes`` and ``train``.
        work_dir (Path): For logs and checkpoints.
        class_weights (list[float], optional): How much each class counts.
        workers (int): Processes that read photographs.
    """
    model = config.model.to_dict()
    schedule = Config.fromfile(PIECES / 'schedules/few_shot_20e.py')
    # those that see all tokens: half of the cost, and as good without
    read = model['backbone']['out_indices']
    model['backbone']['frozen_stages'] = len(read) // 3
    model['head']['loss'] = dict(
        type='LabelSmoothLoss',
        label_smooth_val=SMOOTHING,
        mode='original',
        class_weight=class_weights,
    )
    return Config(
        dict(
            default_scope='mmpretrain',
            model=model,
            load_from=str(start),
            work_dir=str(work_dir),
            train_dataloader=_loader(
                lists, model['backbone']['img_size'], workers
            ),
            # kept in the checkpoint, which is how photographs are prepared
            test_dataloader=config.test_dataloader.to_dict(),
            test_cfg={},
            test_evaluator=dict(type='Accuracy'),
            train_cfg=dict(by_epoch=True, max_epochs=EPOCHS),
            optim_wrapper=schedule.optim_wrapper,
            param_scheduler=schedule.param_scheduler,
            default_hooks=_hooks(),
            visualizer=dict(type='UniversalVisualizer', vis_backends=[]),
            randomness=dict(seed=0),
        )
    )


def _loader(lists: dict[str, Path], img_size: int, workers: int) -> dict:
    # decoded and resized once
    steps = evaluation_pipeline(img_size)[:2]
    dataset = dict(
        type='CustomDataset',
        data_root='',
        ann_file=str(lists['train']),
        classes=str(lists['classes']),
        pipeline=[
            dict(type='mmclca.CacheImages', transforms=steps),
            dict(type='RandomCrop', crop_size=img_size),
            dict(type='RandomFlip', prob=0.5, direction='horizontal'),
            dict(type='PackInputs'),
        ],
    )
    sampler = dict(
        type='mmclca.AtLeastSampler', min_samples=LEAST_AN_EPOCH, shuffle=True
    )
    return dict(
        batch_size=BATCH, num_workers=workers, sampler=sampler, dataset=dataset
    )


def _hooks() -> dict:
    hooks = Config.fromfile(PIECES / 'default_runtime.py').default_hooks
    hooks.logger.interval = 10
    hooks.checkpoint.interval = CHECKPOINT_EVERY
    return hooks
