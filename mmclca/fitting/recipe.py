# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""How a model is trained on from its probe.

AdamW whose learning rate decays towards the first layers, warm-up and a
cosine, label smoothing, crops and flips, and enough steps however few the
photographs are. docs/results/few_photographs.md says what was tried.
"""

import math
from pathlib import Path

from mmengine.config import Config

from .classifier import READ, resize

EPOCHS, FEWEST_STEPS, BATCH = 20, 100, 32
RATE, LAYER_DECAY, WEIGHT_DECAY = 1e-3, 0.75, 0.05
SMOOTHING, WARM_UP = 0.1, 0.1
# how often a checkpoint is written, of all epochs
CHECKPOINTS = 10


def num_epochs(num_images: int) -> int:
    """Epochs for a number of photographs."""
    return max(EPOCHS, math.ceil(FEWEST_STEPS / num_batches(num_images)))


def num_batches(num_images: int) -> int:
    """Steps of an epoch."""
    return math.ceil(num_images / BATCH)


def training_config(
    config: Config,
    start: Path,
    lists: dict[str, Path],
    work_dir: Path,
    num_images: int,
    class_weights: list[float] | None,
    workers: int,
) -> Config:
    """What a runner of mmengine trains.

    Args:
        config (Config): The classifier, see :func:`classifier_config`.
        start (Path): Checkpoint of its probe.
        lists (dict[str, Path]): Of
            :func:`mmclca.datasets.photographs.write_lists`.
        work_dir (Path): For logs and checkpoints.
        num_images (int): Photographs in the list.
        class_weights (list[float], optional): How much each class counts.
        workers (int): Processes that read photographs.
    """
    epochs = num_epochs(num_images)
    model = config.model.to_dict()
    model['head']['loss'] = _loss(model['head']['num_classes'], class_weights)
    size = model['backbone']['img_size']
    loader = dict(
        batch_size=BATCH,
        num_workers=workers,
        sampler=dict(type='DefaultSampler', shuffle=True),
        dataset=_dataset(lists, size),
    )
    return Config(
        dict(
            default_scope='mmpretrain',
            model=model,
            load_from=str(start),
            work_dir=str(work_dir),
            train_dataloader=loader,
            # kept in the checkpoint, which is how photographs are prepared
            test_dataloader=config.test_dataloader.to_dict(),
            test_cfg={},
            test_evaluator=dict(type='Accuracy'),
            train_cfg=dict(by_epoch=True, max_epochs=epochs),
            optim_wrapper=_optimizer(),
            param_scheduler=[_schedule(epochs * num_batches(num_images))],
            default_hooks=_hooks(max(1, epochs // CHECKPOINTS)),
            visualizer=dict(type='UniversalVisualizer', vis_backends=[]),
            randomness=dict(seed=0),
        )
    )


def _loss(num_classes: int, class_weights: list[float] | None) -> dict:
    return dict(
        type='LabelSmoothLoss',
        label_smooth_val=SMOOTHING,
        num_classes=num_classes,
        mode='original',
        class_weight=class_weights,
    )


def _dataset(lists: dict[str, Path], size: int) -> dict:
    # decoded and resized once
    cached = dict(type='mmclca.CacheImages', transforms=[READ, resize(size)])
    crop = dict(
        type='RandomResizedCrop',
        scale=size,
        crop_ratio_range=(0.5, 1.0),
        interpolation='bicubic',
        backend='pillow',
    )
    flip = dict(type='RandomFlip', prob=0.5, direction='horizontal')
    return dict(
        type='CustomDataset',
        data_root='',
        ann_file=str(lists['train']),
        classes=str(lists['classes']),
        pipeline=[cached, crop, flip, dict(type='PackInputs')],
    )


def _optimizer() -> dict:
    no_decay = dict(decay_mult=0.0)
    return dict(
        optimizer=dict(
            type='AdamW', lr=RATE, weight_decay=WEIGHT_DECAY, fused=True
        ),
        constructor='LearningRateDecayOptimWrapperConstructor',
        paramwise_cfg=dict(
            layer_decay_rate=LAYER_DECAY,
            flat_decay_mult=0.0,
            custom_keys={
                '.cls_token': no_decay,
                '.pos_embed': no_decay,
                '.register_tokens': no_decay,
            },
        ),
    )


def _schedule(steps: int) -> dict:
    return dict(
        type='mmclca.WarmupCosineLR',
        T_max=steps,
        warmup=int(WARM_UP * steps),
        by_epoch=False,
    )


def _hooks(interval: int) -> dict:
    checkpoint = dict(
        type='mmclca.AtomicCheckpointHook', interval=interval, max_keep_ckpts=1
    )
    return dict(
        timer=dict(type='IterTimerHook'),
        logger=dict(type='LoggerHook', interval=10),
        param_scheduler=dict(type='ParamSchedulerHook'),
        checkpoint=checkpoint,
        sampler_seed=dict(type='DistSamplerSeedHook'),
        visualization=dict(type='VisualizationHook', enable=False),
    )
