# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Gain from pre-training without labels: leaf40 at 112 px, three photos per
# class, 300 steps, two seeds. Each pre-training took 40 minutes on one core;
# networks from scratch train 40 minutes longer with labels, one seed. For
# comparison DeiT-Ti from ImageNet-1k. Run the pre-training commands in
# docs/results/pretraining.md first.
# Results: docs/results/pretraining.md.
# Command: python tools/sweep.py configs/sweeps/pretraining.py --jobs 2
# The environment variables MMCLCA_DATA and MMCLCA_WEIGHTS name the folders of
# data sets and of weights, MMCLCA_STARTS that of the starts.
datasets = ['leaf40']
methods = ['none']
keep_rates = [1.0]
sizes = [112]
clca = ['base']
seeds = [1, 2]
recipe = 'scratch_40e'
_wide, _thin = 'vit-tiny-12h-p16', 'vit-thin-24-p16'
_starts = '{{$MMCLCA_STARTS:work_dirs/pretraining}}'


def _epochs(number):
    return {
        'train_cfg.max_epochs': number,
        'train_cfg.val_interval': number,
        'param_scheduler.0.T_max': number,
    }


def _start(name, epochs, backbone=_wide):
    file = f'{_starts}/{name}/epoch_{epochs}.pth'
    return dict(
        variant=name, backbones=[backbone], options={'load_from': file}
    )


def _from_scratch(backbone):
    return dict(
        variant='scratch',
        backbones=[backbone],
        seeds=[1],
        options=_epochs(315),
    )


blocks = [
    _start('mae', 52),
    _start('distilled-mae', 32),
    _start('mocov3', 5),
    _start('mirl', 32, _thin),
    _from_scratch(_wide),
    _from_scratch(_thin),
    dict(variant='imagenet', backbones=['deit-tiny-p16']),
]
options = {
    **_epochs(30),
    'train_dataloader.sampler': dict(
        type='mmclca.MinLengthSampler', min_samples=320
    ),
    'default_hooks.logger.interval': 10,  # an epoch
    'train_dataloader.num_workers': 0,
    'test_dataloader.num_workers': 0,
}
weights = {
    _wide: None,
    _thin: None,
    'deit-tiny-p16': '{{$MMCLCA_WEIGHTS:weights}}/deit_tiny_patch16_224.pth',
}
