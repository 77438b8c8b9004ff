# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""How a model is trained on from its probe: configs/few_shot in a wheel.

AdamW whose learning rate decays towards the first layers, warm-up and a
cosine, label smoothing, crops and flips, and epochs long enough however few
the photographs are. docs/results/few_photographs.md says what was tried.
"""

import math
from pathlib import Path

from mmengine.config import Config

from .classifier import READ, resize

EPOCHS, WARM_UP = 20, 2
BATCH, LEAST_AN_EPOCH = 32, 256
SMOOTHING = 0.1
CHECKPOINT_EVERY = 2  # epochs
_NO_DECAY = dict(decay_mult=0.0)
OPTIMIZER = dict(
    optimizer=dict(type='AdamW', lr=2e-3, weight_decay=0.05, fused=True),
    constructor='LearningRateDecayOptimWrapperConstructor',
    paramwise_cfg=dict(
        layer_decay_rate=0.75,
        flat_decay_mult=0.0,  # biases, norms, layer scale
        custom_keys={
            '.cls_token': _NO_DECAY,
            '.pos_embed': _NO_DECAY,
            '.register_tokens': _NO_DECAY,
        },
    ),
)
SCHEDULE = dict(
    type='mmclca.WarmupCosineLR',
    T_max=EPOCHS,
    warmup=WARM_UP,
    convert_to_iter_based=True,
)


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
        lists (dict[str, Path]): Of
            :func:`mmclca.datasets.photographs.write_lists`.
        work_dir (Path): For logs and checkpoints.
        class_weights (list[float], optional): How much each class counts.
        workers (int): Processes that read photographs.
    """
    model = config.model.to_dict()
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
            optim_wrapper=dict(OPTIMIZER),
            param_scheduler=[SCHEDULE],
            default_hooks=_hooks(),
            visualizer=dict(type='UniversalVisualizer', vis_backends=[]),
            randomness=dict(seed=0),
        )
    )


def _loader(lists: dict[str, Path], img_size: int, workers: int) -> dict:
    # decoded and resized once
    steps = [READ, resize(img_size)]
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
    checkpoint = dict(
        type='mmclca.AtomicCheckpointHook',
        interval=CHECKPOINT_EVERY,
        max_keep_ckpts=1,
    )
    return dict(
        timer=dict(type='IterTimerHook'),
        logger=dict(type='LoggerHook', interval=10),
        param_scheduler=dict(type='ParamSchedulerHook'),
        checkpoint=checkpoint,
        sampler_seed=dict(type='DistSamplerSeedHook'),
        visualization=dict(type='VisualizationHook', enable=False),
    )
