# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Fine-tuning from the linear probe, and unknown classes, with few photos per
# class on nine datasets. tools/sweep.py does not read this file;
# `python tools/research/pages.py fine_tuning` measures missing results.
# Results: docs/results/fine_tuning.md.
# The environment variables MMCLCA_DATA and MMCLCA_WEIGHTS name the folders
# for datasets and weights.
# further views of training photos; the center crop shows 87.5 % of height and
# width
_views = [
    dict(
        row=row,
        steps=[
            dict(
                type='Resize',
                backend='pillow',
                interpolation='bicubic',
                scale=(int(224 / share),) * 2,
            ),
            dict(type='CenterCrop', crop_size=224),
        ],
    )
    for row, share in (('75 %', 0.75), ('60 %', 0.6))
]
# former defaults of fit, nine layers
_fitted = dict(keep_rate=0.5, row='three crops', extra_views=_views)
defaults = {
    'DeiT-Tiny': dict(_fitted, backbone='deit-tiny-p16', method='ATC'),
    'ViT-Tiny': dict(_fitted, backbone='vit-tiny-p16', method='DiffRate'),
}
# weights, dataset, number of crops in the initial probe
_sets = ('coffee5', 'cotton5', 'grape5', 'leaf40', 'leaf40_white')
_sets += ('leafsnap27', 'mangodis8', 'seedlings12', 'strawberry5')
trained = [('deit-tiny-p16', name, 1) for name in _sets]
trained += [
    (backbone, name, 3)
    for name in ('coffee5', 'grape5', 'seedlings12')
    for backbone in ('vit-tiny-p16', 'deit-tiny-p16')
]
# weights and set of the whole network, fine-tuned
fine_tuned = [
    ('deit-tiny-p16', name) for name in ('coffee5', 'grape5', 'seedlings12')
]
# of the recipe, one at a time; weights and set
changes = {
    'a quarter of the rate': {'optim_wrapper.optimizer.lr': 5e-4},
    'average of five epochs': {
        'custom_hooks': [
            dict(
                type='EMAHook',
                ema_type='StochasticWeightAverage',
                begin_epoch=15,
            )
        ]
    },
}
changed = [
    (backbone, name, change)
    for backbone, name, crops in trained
    for change in changes
    if crops > 1
]
# photos per class of synthetic cultivars
synthetic = (8, 15, 30, 100, 300)
