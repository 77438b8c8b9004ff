# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DeiT III's recipe against the plain one, from scratch on 2,000 synthetic
# leaves of 16 cultivars at 112 px, 60 epochs each: LAMB, binary cross-entropy,
# mixing and 3-Augment, all of them and each alone. Forward passes in bfloat16.
# Results: docs/results/training.md.
# Command: python tools/sweep.py configs/sweeps/deit3_on_leaves.py --jobs 2
# The environment variable MMCLCA_DATA names the folder of data sets; the
# leaves are drawn by the command in
# configs/_base_/datasets/synthetic-leaves-16_112.py.
_base_ = '../_base_/_three_augment.py'
datasets = ['synthetic-leaves-16']
backbones = ['deit3-tiny-p16']
methods = ['none']
keep_rates = [1.0]
sizes = [112]
clca = ['base']
seeds = [1, 2]
recipe = 'scratch_40e'
_lamb = {
    'optim_wrapper.optimizer': dict(
        _delete_=True, type='Lamb', lr=3e-3, weight_decay=0.02
    ),
    'optim_wrapper.clip_grad': None,  # Lamb clips on its own
}
_bce = {
    'model.head.loss': dict(type='mmclca.ThresholdedBCE'),
    'model.train_cfg': dict(
        augments=[
            dict(type='Mixup', alpha=0.8),
            dict(type='CutMix', alpha=1.0),
        ]
    ),
}
_gray = _base_._three_augment.gray
_blur = _base_._three_augment.blur
_solarize = _base_._three_augment.solarize
_jitter = _base_._three_augment.jitter
_load = dict(
    type='mmclca.CacheImages',
    transforms=[
        dict(type='LoadImageFromFile'),
        dict(type='Resize', scale=(128, 128), interpolation='area'),
    ],
)
_three = {
    'train_dataloader.dataset.pipeline': [
        _load,
        dict(type='RandomCrop', crop_size=112),
        dict(type='RandomFlip', prob=0.5),
        dict(type='RandomChoice', transforms=[[_gray], [_solarize], [_blur]]),
        _jitter,
        dict(type='PackInputs'),
    ]
}
blocks = [
    dict(variant='plain'),
    dict(variant='lamb', seeds=[1], options=_lamb),
    dict(variant='bce', seeds=[1], options=_bce),
    dict(variant='3-augment', seeds=[1], options=_three),
    dict(variant='deit3', options={**_lamb, **_bce, **_three}),
]
options = {
    'model.backbone.arch': dict(
        _delete_=True,
        embed_dims=192,
        num_layers=6,
        num_heads=3,
        feedforward_channels=768,
    ),
    'model.head.in_channels': 192,
    'train_cfg.max_epochs': 60,
    'train_cfg.val_interval': 60,
    'param_scheduler.0.T_max': 60,
    'optim_wrapper.type': 'mmclca.BF16OptimWrapper',
    'default_hooks.logger.interval': 62,  # an epoch
    'train_dataloader.num_workers': 0,
    'test_dataloader.num_workers': 0,
}
