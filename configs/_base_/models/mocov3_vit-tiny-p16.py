# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# MoCo v3 of ViT-Ti/16 of 12 heads. Its patch embedding is trained; in the MoCo
# v3 paper it is frozen.
temperature = 0.2
batch_norms = dict(
    type='NonLinearNeck',
    hid_channels=4096,
    out_channels=256,
    with_bias=False,
    with_last_bn=True,
    with_last_bn_affine=False,
    with_last_bias=False,
    with_avg_pool=False,
)
model = dict(
    type='MoCoV3',
    base_momentum=0.01,  # what changes: the momentum is 0.99, and rises to 1
    data_preprocessor=dict(
        type='SelfSupDataPreprocessor',
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        to_rgb=True,
    ),
    backbone=dict(
        type='MoCoV3ViT',
        arch=dict(
            embed_dims=192,
            num_layers=12,
            num_heads=12,
            feedforward_channels=768,
        ),
        img_size=224,
        patch_size=16,
        stop_grad_conv1=False,
    ),
    neck=dict(**batch_norms, in_channels=192, num_layers=3),
    head=dict(
        type='MoCoV3Head',
        predictor=dict(**batch_norms, in_channels=256, num_layers=2),
        loss=dict(type='CrossEntropyLoss', loss_weight=2 * temperature),
        temperature=temperature,
    ),
)
