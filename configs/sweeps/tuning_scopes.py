# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Fine-tuning scopes for DeiT-Ti: attention, FFNs, head, LoRA or all, on leaf40
# with three photos per class, 224 px; one seed at 288 px. Results contain
# accuracy, memory and time. Head and LoRA use ten times the learning rate, as
# they learn little in 50 epochs otherwise.
# Results: docs/results/training.md.
# Command: python tools/sweep.py configs/sweeps/tuning_scopes.py --jobs 1
# The environment variables MMCLCA_DATA and MMCLCA_WEIGHTS name the folders of
# data sets and of weights.
datasets = ['leaf40']
backbones = ['deit-tiny-p16']
methods = ['none']
keep_rates = [1.0]
sizes = [224]
clca = ['base']
seeds = [1, 2]
# of few weights, ten times all's
_few = {'optim_wrapper.optimizer.lr': 1e-3}


def _scope(scope, of=''):
    parts = ['head'] if scope == 'head' else [f'{of}backbone', f'{of}head']
    hooks = [
        dict(type='mmclca.ClassCountHook'),
        dict(type='mmclca.TuningScopeHook', scope=scope),
        dict(type='mmclca.GradientStatsHook', parts=parts),
    ]
    few = scope in ('head', 'lora')
    return {'custom_hooks': hooks, **(_few if few else {})}


def _lora(size):
    """LoRA around the classifier that the other runs have."""
    module = dict(
        type='mmclca.TokenReductionClassifier',
        data_preprocessor=dict(
            mean=[123.675, 116.28, 103.53],
            std=[58.395, 57.12, 57.375],
            to_rgb=True,
        ),
        backbone=dict(
            type='mmclca.TokenReductionViT',
            arch='deit-tiny',
            img_size=size,
            patch_size=16,
        ),
        head=dict(type='LinearClsHead', num_classes=40, in_channels=192),
    )
    lora = dict(
        _delete_=True,
        type='mmclca.LoRAModel',
        rank=8,
        alpha=16,
        targets=[dict(type='.*qkv')],
        module=module,
    )
    return {**_scope('lora', 'module.'), 'model': lora}


_scopes = ('attn', 'ffn', 'head', 'full')
blocks = [
    *(dict(variant=name, options=_scope(name)) for name in _scopes),
    *(
        dict(variant=name, sizes=[288], seeds=[1], options=_scope(name))
        for name in _scopes
    ),
    dict(variant='lora', options=_lora(224)),
    dict(variant='lora', sizes=[288], seeds=[1], options=_lora(288)),
]
options = {
    'optim_wrapper.type': 'mmclca.BF16OptimWrapper',
    'train_dataloader.num_workers': 0,
    'test_dataloader.num_workers': 0,
}
weights = {
    'deit-tiny-p16': '{{$MMCLCA_WEIGHTS:weights}}/deit_tiny_patch16_224.pth'
}
