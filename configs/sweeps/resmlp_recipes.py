# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ResMLP from scratch on 2,000 synthetic leaves of 16 cultivars at 112 px: with
# the recipe in configs/sweeps/architectures_from_scratch.py (AdamW), the same
# with LAMB, its own recipe (LAMB, mixing, smoothing), and its own recipe with
# a PatchConvNet from that sweep as teacher. 40 epochs.
# Results: docs/results/training.md.
# Command: python tools/sweep.py configs/sweeps/resmlp_recipes.py --jobs 2
# The environment variable MMCLCA_TEACHERS names the folder with
# patchconvnet_16.pth, the last checkpoint of that sweep's PatchConvNet.
_base_ = 'architectures_from_scratch.py'
_arch = dict(_delete_=True, embed_dims=192, num_layers=9)
_resmlp = {'model.backbone.arch': _arch, 'model.head.in_channels': 192}
_lamb = {
    **_resmlp,
    'optim_wrapper.optimizer': dict(
        _delete_=True, type='Lamb', lr=5e-3, weight_decay=0.2
    ),
    'optim_wrapper.clip_grad': None,  # Lamb clips on its own
}
_own = {
    **_lamb,
    'model.head.loss': dict(
        type='LabelSmoothLoss', label_smooth_val=0.1, mode='original'
    ),
    'model.train_cfg': dict(
        augments=[
            dict(type='Mixup', alpha=0.8),
            dict(type='CutMix', alpha=1.0),
        ]
    ),
}
_teacher = dict(
    model=None,
    checkpoint='{{$MMCLCA_TEACHERS:work_dirs/teachers}}/patchconvnet_16.pth',
    loss=dict(type='mmclca.DeiTDistillation', kind='hard', alpha=0.5),
)
backbones = ['resmlp-s12-p16']
blocks = [
    dict(variant='adamw', options=_resmlp),
    dict(variant='lamb', options=_lamb),
    dict(variant='own', options=_own),
    dict(
        variant='own-taught',
        options={
            **_own,
            'model.type': 'mmclca.DistilledClassifier',
            'model.teacher': _teacher,
        },
    ),
]
