# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# MAE-Lite with attention distillation from the last layer of MAE-Base, which
# was pre-trained for 1,600 epochs.
_base_ = './mae_vit-tiny-p16.py'
model = dict(
    type='mmclca.DistilledMAE',
    teacher=dict(
        backbone='mae_vit-base-p16_8xb512-amp-coslr-1600e_in1k',
        checkpoint='https://mmassets.onedl.ai/mmselfsup/1.x/mae/'
        'mae_vit-base-p16_8xb512-fp16-coslr-1600e_in1k/'
        'mae_vit-base-p16_8xb512-fp16-coslr-1600e_in1k_'
        '20220825-f7569ca2.pth',
    ),
    distill=[dict(type='mmclca.AttentionDistillation', layers=(12,))],
)
