# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Gain from a teacher with three photos per class: a distilled ViT with the
# first six layers of DeiT-Ti, 112 px, alone and with DeiT's hard and soft
# distillation, on three random leaf40 splits, one seed each. 1,000 steps. The
# teacher for a split is the best model by fit on its training photos: with a
# table of files and classes (names as in classes.txt) as TABLE,
#   mmclca fit FOLDER_OF_THE_SET --labels TABLE --budget best \
#     --out work_dirs/teachers/leaf40_dN
# Results: docs/results/training.md.
# Command: python tools/sweep.py configs/sweeps/distillation.py --jobs 2
# The environment variables MMCLCA_DATA, MMCLCA_WEIGHTS and MMCLCA_TEACHERS
# name the folders of data sets, weights and teachers.
datasets = ['leaf40']
backbones = ['deit-tiny-distilled-p16']
methods = ['none']
keep_rates = [1.0]
sizes = [112]
clca = ['base']
_teachers = '{{$MMCLCA_TEACHERS:work_dirs/teachers}}/leaf40_d'
_split = '{{ fileDirname }}/../few_shot/splits/leaf40_white/d'
_losses = dict(
    alone=None,
    hard=dict(type='mmclca.DeiTDistillation', kind='hard', alpha=0.5),
    soft=dict(
        type='mmclca.DeiTDistillation',
        kind='soft',
        alpha=0.5,
        tau=3.0,
        reduction='batchmean',
    ),
)


def _options(n, loss):
    options = {
        'train_dataloader.dataset.ann_file': f'{_split}{n}.txt',
        'test_dataloader.dataset.ann_file': f'{_split}{n}_test.txt',
    }
    if loss:
        options['model.teacher'] = dict(
            model=None, checkpoint=f'{_teachers}{n}', loss=loss
        )
    return options


blocks = [
    dict(variant=name, seeds=[n + 1], options=_options(n, loss))
    for n in range(3)
    for name, loss in _losses.items()
]
options = {
    'model.type': 'mmclca.TokenReductionClassifier',
    'model.backbone.depth': 6,
    'train_dataloader.sampler': dict(
        type='mmclca.MinLengthSampler', min_samples=640
    ),
    'optim_wrapper.type': 'mmclca.BF16OptimWrapper',
    'train_dataloader.num_workers': 0,
    'test_dataloader.num_workers': 0,
}
weights = {
    'deit-tiny-distilled-p16': '{{$MMCLCA_WEIGHTS:weights}}/'
    'deit_tiny_patch16_224.pth'
}
