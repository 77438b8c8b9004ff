# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# The teacher of DeiT, CaiT and ResMLP: RegNetY-16GF, 84 M parameters, 82.9 %
# on ImageNet-1k, whose class is a second label.
teacher = dict(
    model=dict(
        type='ImageClassifier',
        data_preprocessor=dict(
            mean=[123.675, 116.28, 103.53],
            std=[58.395, 57.12, 57.375],
            to_rgb=True,
        ),
        backbone=dict(type='TIMMBackbone', model_name='regnety_160'),
        neck=dict(type='GlobalAveragePooling'),
        head=dict(type='LinearClsHead', num_classes=1000, in_channels=3024),
    ),
    checkpoint='timm://regnety_160.deit_in1k',
    loss=dict(type='mmclca.DeiTDistillation', kind='hard', alpha=0.5),
)
