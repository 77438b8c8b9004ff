# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# The CLCA paper's baselines, CLCA, the CLA head and plain fine-tuning with one
# recipe: CLCA's recipe, DeiT-Tiny weights, no dropout. TransFG has overlapping
# patches and SIM-Trans has not, as in the paper's costs; their last block is
# new, as in the public code, or pretrained. leaf40 with two seeds, eight
# synthetic cultivars with 18 training images and one seed.
# Results: docs/results/baselines.md.
# Command: python tools/sweep.py configs/sweeps/baselines.py --jobs 2 \
#   --threads 1
# The environment variables MMCLCA_DATA and MMCLCA_WEIGHTS name the folders
# of data sets and of weights; the cultivars are drawn by
# python tools/dataset_converters/synthetic_leaves.py data/synthetic_leaves \
#   --per-class 60 --size 128 --test-fraction 0.5 --difference 0.3
clca = ['base']
methods = ['none']
keep_rates = [1.0]
_own_last = [f'{name}_deit-tiny-p16' for name in ('transfg', 'ffvt')]
_own_last += ['sim-trans_deit-tiny-p16']
_drawn = dict(datasets=['synthetic-leaves'], sizes=[112], seeds=[1])
_leaf40 = dict(datasets=['leaf40'], sizes=[224], seeds=[1, 2])


def _views(crop, **resize):
    """The recipe's augmentation, two views of it."""
    transforms = [
        dict(type='RandomCrop', crop_size=crop),
        dict(type='RandomFlip', prob=0.5, direction='horizontal'),
    ]
    load = [dict(type='LoadImageFromFile'), dict(type='Resize', **resize)]
    return {
        'train_dataloader.dataset.pipeline': [
            dict(type='mmclca.CacheImages', transforms=load),
            dict(type='mmclca.ShuffledView', transforms=transforms),
            dict(type='PackInputs'),
        ]
    }


def _blocks(views, **data):
    """All of them on one data set."""
    evit = dict(data, backbones=['deit-tiny-p16'], methods=['EViT'])
    return [
        dict(evit, clca=['base', 'cla']),
        dict(evit, keep_rates=[0.5, 0.1], clca=['clca']),
        dict(data, backbones=_own_last),
        dict(
            data,
            backbones=_own_last,
            variant='pretrained',
            options={'model.backbone.last_block': 'pretrained'},
        ),
        dict(data, backbones=['cle-vit_deit-tiny-p16'], options=views),
    ]


blocks = [
    *_blocks(
        _views(
            224, scale=(256, 256), backend='pillow', interpolation='bicubic'
        ),
        **_leaf40,
    ),
    *_blocks(_views(112, scale=(128, 128), interpolation='area'), **_drawn),
]
_weights = '{{$MMCLCA_WEIGHTS:weights}}/deit_tiny_patch16_224.pth'
weights = dict.fromkeys(
    [*_own_last, 'cle-vit_deit-tiny-p16', 'deit-tiny-p16'], _weights
)
# the images are small and decoded only once: separate worker processes would
# only compete with the training
options = {
    'optim_wrapper.type': 'mmclca.BF16OptimWrapper',
    'train_dataloader.num_workers': 0,
    'test_dataloader.num_workers': 0,
}
