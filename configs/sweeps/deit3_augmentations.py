# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Augmentations of DeiT III (Touvron's thesis, section 6.4): its recipe with
# 3-Augment, RandAugment, AutoAugment and TrivialAugment, and parts of
# 3-Augment: color jitter alone, and with grayscale, blur or solarization.
# ViT-B from scratch on ImageNet-1k at 224 px, 400 epochs.
# Results: none yet.
# Command: python tools/sweep.py configs/sweeps/deit3_augmentations.py
_base_ = ['deit3_sizes.py', '../_base_/_three_augment.py']
sizes = [224]
_load = [
    dict(type='LoadImageFromFile'),
    dict(
        type='RandomResizedCrop',
        scale=224,
        backend='pillow',
        interpolation='bicubic',
    ),
    dict(type='RandomFlip', prob=0.5, direction='horizontal'),
]
_gray = _base_._three_augment.gray
_blur = _base_._three_augment.blur
_solarize = _base_._three_augment.solarize
_jitter = _base_._three_augment.jitter
_rand = dict(
    type='RandAugment',
    policies='timm_increasing',
    num_policies=2,
    total_level=10,
    magnitude_level=9,
    magnitude_std=0.5,
    hparams=dict(pad_val=[104, 116, 124], interpolation='bicubic'),
)
_auto = dict(type='AutoAugment', policies='imagenet')
_trivial = [
    dict(type='NumpyToPIL', to_rgb=True),
    dict(type='torchvision/TrivialAugmentWide'),
    dict(type='PILToNumpy', to_bgr=True),
]


def _block(variant, *steps):
    pipeline = [*_load, *steps, dict(type='PackInputs')]
    return dict(
        variant=variant,
        options={
            'train_dataloader.dataset.pipeline': pipeline,
            'test_dataloader.dataset.pipeline.1.scale': 224,
        },
    )


def _one_of(*steps):
    return dict(type='RandomChoice', transforms=[[step] for step in steps])


blocks = [
    _block('3-augment', _one_of(_gray, _solarize, _blur), _jitter),
    _block('randaugment', _rand),
    _block('autoaugment', _auto),
    _block('trivialaugment', *_trivial),
    _block('jitter', _jitter),
    _block('jitter-gray', _one_of(_gray), _jitter),
    _block('jitter-gray-blur', _one_of(_gray, _blur), _jitter),
    _block('without-jitter', _one_of(_gray, _solarize, _blur)),
]
