# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# A few photos per class on nine datasets, frozen networks: one factor at a
# time, starting from half of the tokens at 224 px. tools/sweep.py does not
# read this file; `python tools/research/pages.py few_photos` measures
# missing results.
# Results: docs/results/few_photos.md.
# The environment variables MMCLCA_DATA and MMCLCA_WEIGHTS name the folders
# for datasets and weights.
_reducers = ('ATC', 'DiffRate', 'EViT', 'MCTF', 'ToMe')
_half = [dict(method=method, keep_rate=0.5) for method in _reducers]
_rates = [
    dict(method=method, keep_rate=rate)
    for method in _reducers
    for rate in (0.7, 0.25)
]
_sides = (288, 256, 192, 160, 144, 128, 112, 96)
_full = [dict(img_size=size) for size in _sides]
_sizes = [
    dict(method='ATC', keep_rate=0.5, img_size=size)
    for size in (192, 160, 144, 128)
]
# preprocessing to a square, other than resizing to 256 px and center crop
_resize = dict(type='Resize', backend='pillow', interpolation='bicubic')
_middle = dict(type='CenterCrop', crop_size=224)
_squares = {
    'whole': [dict(_resize, scale=(224, 224))],
    'padded': [
        dict(_resize, scale=(256, 256), keep_ratio=True),
        dict(type='Pad', size=(256, 256), pad_val=dict(img=255)),
        _middle,
    ],
    'cropped': [
        dict(
            type='ResizeEdge',
            scale=256,
            edge='short',
            backend='pillow',
            interpolation='bicubic',
        ),
        _middle,
    ],
}
_kinds = [
    dict(row=row, steps=steps, **_half[0]) for row, steps in _squares.items()
]
# further views of training photos by image size; the center crop shows 87.5 %
# of height and width
_flip = dict(type='RandomFlip', prob=1.0, direction='horizontal')
_views = {
    size: {
        row: dict(
            row=row,
            steps=[
                dict(_resize, scale=(int(size / share),) * 2),
                dict(type='CenterCrop', crop_size=size),
                *more,
            ],
        )
        for row, share, more in (
            ('mirrored', 0.875, [_flip]),
            ('75 %', 0.75, []),
            ('60 %', 0.6, []),
        )
    }
    for size in (224, 192, 160, 128)
}
_kinds += [
    dict(row=f'and {row}', extra_views=[view], **one)
    for row, view in _views[224].items()
    for one in ({}, _half[0])
    if one or row != 'mirrored'
]
# three crops per training photo
_kinds += [
    dict(
        row='three crops',
        extra_views=[_views[size]['75 %'], _views[size]['60 %']],
        img_size=size,
        **method,
    )
    for method, sizes in (
        ({}, (224, 160)),
        (dict(method='ATC', keep_rate=0.5), (224, 192, 160, 128)),
        (dict(method='DiffRate', keep_rate=0.5), (224, 192, 160)),
    )
    for size in sizes
]
networks = [
    dict(one, backbone=backbone)
    for one in ({}, *_half, *_rates, *_full, *_sizes, *_kinds)
    for backbone in ('deit-tiny-p16', 'vit-tiny-p16')
]
# layers and features per layer
_last, _most, _all = [11], list(range(9)), list(range(12))
readings = {
    'CLS, last layer': (_last, ['cls']),
    'CLS, layers 0 to 11': (_all, ['cls']),
    'average, layers 0 to 8': (_most, ['average']),
    'average, layers 0 to 11': (_all, ['average']),
    'weighted average, layers 0 to 8': (_most, ['weighted']),
    'last states, layers 0 to 8': (_most, ['last']),
    'CLS and average, layers 0 to 8': (_most, ['cls', 'average']),
    'CLS and average, layers 0 to 11': (_all, ['cls', 'average']),
    'std, layers 0 to 8': (_most, ['std']),
    'CLS and std, layers 0 to 8': (_most, ['cls', 'std']),
    'CLS and std, layers 0 to 11': (_all, ['cls', 'std']),
    'CLS and std, layers 4 to 11': (list(range(4, 12)), ['cls', 'std']),
    'CLS, average and std, layers 0 to 8': (_most, ['cls', 'average', 'std']),
    'CLS, average and std, layers 0 to 11': (_all, ['cls', 'average', 'std']),
}
default = 'CLS, average and std, layers 0 to 8'
# of several views
viewed = [default, 'CLS and std, layers 0 to 8', 'CLS and std, layers 0 to 11']
# kind and strength; all but the first read the default, and what users would
classifiers = {
    'ridge 0.1': ('ridge', 0.1),
    'ridge 0.03': ('ridge', 0.03),
    'ridge 0.3': ('ridge', 0.3),
    'ridge 1': ('ridge', 1.0),
    'LDA 0.5': ('lda', 0.5),
    'logistic 10': ('logistic', 10.0),
    'logistic 100': ('logistic', 100.0),
    'nearest mean': ('ncm', 1.0),
}
compared = [default, 'CLS, last layer', 'CLS and average, layers 0 to 11']
counts = (1, 3, 5, 10)
# former defaults of fit, nine layers
_fitted = dict(
    keep_rate=0.5,
    reading=default,
    row='three crops',
    extra_views=[_views[224]['75 %'], _views[224]['60 %']],
)
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
