# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Causes of the large gradients with the cache in configs/sweeps/leaf40.py, and
# remedies: gradients by model part and token; no CLR token; CLR tokens with
# the initial position of CLS; other learning rates; weights without an outlier
# channel in CLS.
# Results: docs/results/leaf40.md.
# Command: python tools/sweep.py configs/sweeps/leaf40_why.py --jobs 2
# The runs by token need tools/research on PYTHONPATH, which has their hook.
_base_ = 'leaf40.py'
methods = ['EViT']
keep_rates = [0.25]
clca = ['clc', 'clca']
_by_layer = {
    'custom_hooks.1.parts': [
        *(f'backbone.layers.{layer}' for layer in range(12)),
        'head',
    ]
}
blocks = [
    dict(
        variant='clr-at-cls', options={'model.backbone.cache.clr_at_cls': True}
    ),
    dict(
        variant='by-layer',
        clca=['base', 'cla', 'clc', 'clca'],
        options=_by_layer,
    ),
    dict(
        variant='by-token',
        clca=['base', 'clc', 'clca'],
        seeds=[1],
        options={
            'custom_imports': dict(imports=['gradient_sources']),
            'custom_hooks': [
                dict(type='mmclca.ClassCountHook'),
                dict(
                    type='mmclca.GradientStatsHook',
                    parts=['backbone.layers.0.attn.qkv'],
                ),
                dict(
                    type='mmclca.GradientSourcesHook',
                    linear='backbone.layers.0.attn.qkv',
                ),
            ],
        },
    ),
    dict(
        variant='no-clr',
        keep_rates=[0.1, 0.25, 0.5],
        options={'model.backbone.cache.num_tokens': 0},
    ),
    dict(
        variant='clr-at-cls',
        keep_rates=[0.1, 0.5],
        seeds=[1],
        options={'model.backbone.cache.clr_at_cls': True},
    ),
    dict(
        variant='lr3e-5',
        clca=['base', 'clca'],
        seeds=[1],
        options={'optim_wrapper.optimizer.lr': 3e-5},
    ),
    dict(
        variant='lr3e-4',
        clca=['base', 'clca'],
        seeds=[1],
        options={'optim_wrapper.optimizer.lr': 3e-4},
    ),
    dict(
        variant='by-layer',
        backbones=['vit-tiny-p16'],
        clca=['base', 'cla', 'clc', 'clca'],
        seeds=[1],
        options=_by_layer,
    ),
]
weights = {
    'vit-tiny-p16': '{{$MMCLCA_WEIGHTS:weights}}/'
    'vit_tiny_patch16_224.safetensors'
}
