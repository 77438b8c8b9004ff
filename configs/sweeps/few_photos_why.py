# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Ablations for the few-photos recipe: each variant changes one setting in
# 'ours' in configs/sweeps/few_photos.py at keep rate 0.1, on three of its
# random splits. The baselines are its runs. ToMe merges at most half of the
# tokens and is compared with EViT 0.5.
# Results: docs/results/few_photos_why.csv.
# Command: python tools/sweep.py configs/sweeps/few_photos_why.py --jobs 2
_base_ = 'few_photos.py'
keep_rates = [0.1]
backbones = ['lf-evit_deit-tiny-p16']
clca = ['base']
recipe = 'few_shot_20e'
_sampler = 'train_dataloader.sampler'
_train = 'train_dataloader.dataset.pipeline'
_test = 'test_dataloader.dataset.pipeline'
_resize = dict(
    type='Resize', scale=(256, 256), backend='pillow', interpolation='bicubic'
)
_read = [dict(type='LoadImageFromFile'), _resize]
_augmented = [
    dict(type='mmclca.CacheImages', transforms=_read),
    dict(type='RandomCrop', crop_size=224),
    dict(type='RandomFlip', prob=0.5, direction='horizontal'),
]
_pack = dict(type='PackInputs')
_jitter = dict(
    type='ColorJitter', brightness=0.4, contrast=0.4, saturation=0.4
)
_erasing = dict(
    type='RandomErasing',
    erase_prob=0.25,
    mode='rand',
    fill_color=[103.53, 116.28, 123.675],
    fill_std=[57.375, 57.12, 58.395],
)
_mirrored = [
    *_read,
    dict(type='CenterCrop', crop_size=224),
    dict(
        type='TestTimeAug',
        transforms=[
            [dict(type='RandomFlip', prob=prob) for prob in (1.0, 0.0)],
            [_pack],
        ],
    ),
]
_hooks = _base_._hooks
_average = dict(type='EMAHook', momentum=0.02)
_views = dict(type='PrepareTTAHook', tta_cfg=dict(type='AverageClsScoreTTA'))
_backbone = 'model.backbone'
_cache = dict(clca=['clc'])
# variant: options, and changed lists in the grid
_changes = {
    # added
    'jitter': ({_train: [*_augmented, _jitter, _pack]}, {}),
    'erasing': ({_train: [*_augmented, _erasing, _pack]}, {}),
    'mixup': (
        {
            'model.train_cfg.augments': [dict(type='Mixup', alpha=0.2)],
            'model.data_preprocessor.num_classes': 40,
        },
        {},
    ),
    'ema': ({'custom_hooks': [*_hooks, _average]}, {}),
    'flip-test': ({_test: _mirrored, 'custom_hooks': [*_hooks, _views]}, {}),
    'cache': ({}, _cache),
    'cache-no-clr': ({f'{_backbone}.cache.num_tokens': 0}, _cache),
    'cache-protected': ({f'{_backbone}.cache.protect_clr': True}, _cache),
    # how tokens are reduced
    'normalized': ({f'{_backbone}.reducer.normalize': True}, {}),
    'topk': ({}, dict(methods=['TopK'])),
    'ats': ({}, dict(methods=['ATS'])),
    'tome': ({}, dict(methods=['ToMe'], keep_rates=[0.5])),
    # layers that are read
    'before': (
        {f'{_backbone}.out_indices': (2, 5, 8), 'model.head.num_layers': 3},
        {},
    ),
    'after': (
        {f'{_backbone}.out_indices': (3, 6, 8), 'model.head.num_layers': 3},
        {},
    ),
    'all-layers': (
        {
            f'{_backbone}.depth': 12,
            f'{_backbone}.reduce_at': (3, 6, 9),
            f'{_backbone}.out_indices': tuple(range(12)),
            'model.head.num_layers': 12,
        },
        {},
    ),
    # what was chosen, chosen otherwise
    'not-frozen': ({f'{_backbone}.frozen_stages': 0}, {}),
    'lr1e-3': ({'optim_wrapper.optimizer.lr': 1e-3}, {}),
    'half': (
        {_sampler: dict(type='mmclca.MinLengthSampler', min_samples=128)},
        {},
    ),
    'double': (
        {_sampler: dict(type='mmclca.MinLengthSampler', min_samples=512)},
        {},
    ),
    'no-decay': ({'optim_wrapper.paramwise_cfg.layer_decay_rate': 1.0}, {}),
    'no-smoothing': ({'model.head.loss.label_smooth_val': 0.0}, {}),
    'no-probe': ({'custom_hooks': [_hooks[0], _hooks[2]]}, {}),
}
blocks = [
    dict(
        variant=f'{name}-d{n}',
        options={**files, **_base_._start, **change},
        **settings,
    )
    for name, (change, settings) in _changes.items()
    for n, files in enumerate(_base_._files[:3])
]
