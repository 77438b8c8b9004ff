# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# What pre-training without labels is good for with few labels: leaf40 at
# 112 px, three photographs a class, two seeds. Each start had the same minutes
# on one core; beside them the same networks from scratch, and DeiT-Ti trained
# on ImageNet-1k. The starts are trained first, by the commands in their
# configs: mae, distilled-mae and mocov3 of configs/mae_lite, mirl of
# configs/mirl, all on leaves at 112 px.
# Results: none yet.
# Command: python tools/sweep.py configs/sweeps/pretraining.py --jobs 1
# The environment variables MMCLCA_DATA and MMCLCA_WEIGHTS name the folders of
# data sets and of weights.
datasets = ['leaf40']
methods = ['none']
keep_rates = [1.0]
sizes = [112]
clca = ['base']
seeds = [1, 2]
recipe = 'scratch_40e'
_wide, _thin = 'vit-tiny-12h-p16', 'vit-thin-24-p16'


def _start(name, backbone=_wide):
    folder = f'work_dirs/{name}-p16_1xb64-100e_leaves-112px'
    load_from = {'load_from': f'{folder}/epoch_100.pth'}
    variant = name.partition('_')[0]
    return dict(variant=variant, backbones=[backbone], options=load_from)


blocks = [
    _start('mae_vit-tiny'),
    _start('distilled-mae_vit-tiny'),
    _start('mocov3_vit-tiny'),
    _start('mirl_vit-thin-24', _thin),
    dict(variant='scratch', backbones=[_wide, _thin]),
    dict(variant='imagenet', backbones=['deit-tiny-p16']),
]
options = {'train_dataloader.num_workers': 0, 'test_dataloader.num_workers': 0}
weights = {
    _wide: None,
    _thin: None,
    'deit-tiny-p16': '{{$MMCLCA_WEIGHTS:weights}}/deit_tiny_patch16_224.pth',
}
