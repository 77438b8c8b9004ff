# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Three photos per class: five random splits; all other images are test images.
# Fine-tuning from our probe ('ours'), also on smaller images, with and without
# reduction ('small'); CLCA and CLA as in the paper; plain fine-tuning of the
# full and the reduced network. One seed, one test, at the last epoch. Forward
# passes in bfloat16.
# Results: docs/results/fine_tuning.md.
# Command: python tools/sweep.py configs/sweeps/few_photos.py --jobs 2
# The environment variables MMCLCA_DATA and MMCLCA_WEIGHTS name the folders
# of data sets and of weights.
datasets = ['leaf40']
sizes = [224]
seeds = [1]
methods = ['EViT']
keep_rates = [0.1, 0.25, 0.5]
_paper = dict(backbones=['deit-tiny-p16'])
_ours = dict(
    backbones=['lf-evit_deit-tiny-p16'], clca=['base'], recipe='few_shot_20e'
)
_full = dict(keep_rates=[1.0])
_hooks = [
    dict(type='mmclca.ClassCountHook'),
    dict(type='mmclca.ProbeInitHook'),
    dict(type='mmclca.GradientStatsHook'),
]
_start = {
    'custom_hooks': _hooks,
    'train_dataloader.sampler': dict(
        type='mmclca.MinLengthSampler', min_samples=256
    ),
}
_split = '{{ fileDirname }}/../few_shot/splits/leaf40_white/d'
_files = [
    {
        'train_dataloader.dataset.ann_file': f'{_split}{n}.txt',
        'test_dataloader.dataset.ann_file': f'{_split}{n}_test.txt',
    }
    for n in range(5)
]
_arms = (
    ('ours', _start, _ours),
    ('ours', _start, dict(_ours, sizes=[192], keep_rates=[0.5])),
    ('paper', {}, dict(_paper, clca=['cla', 'clca'])),
    ('small', _start, dict(_ours, sizes=[128, 144, 160], **_full)),
    ('full', {}, dict(_paper, clca=['base'], **_full)),
    ('plain', {}, dict(_paper, clca=['base'])),
)
blocks = [
    dict(variant=f'{arm}-d{n}', options={**files, **options}, **settings)
    for n, files in enumerate(_files)
    for arm, options, settings in _arms
]
options = {
    'optim_wrapper.type': 'mmclca.BF16OptimWrapper',
    'test_evaluator': [
        dict(type='Accuracy', topk=(1,)),
        dict(type='SingleLabelMetric', items=('recall',)),
    ],
    # the images are small and decoded only once: separate worker processes
    # would only compete with the training
    'train_dataloader.num_workers': 0,
    'test_dataloader.num_workers': 0,
}
_weights = '{{$MMCLCA_WEIGHTS:weights}}/deit_tiny_patch16_224.pth'
weights = {'deit-tiny-p16': _weights, 'lf-evit_deit-tiny-p16': _weights}
