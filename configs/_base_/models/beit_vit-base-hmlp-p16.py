# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# BEiT of ViT-B/16 with the hMLP stem. The tokenizer is DALL-E's, from
# mmpretrain; the tokenizer in Three things, trained on ImageNet-1k, was not
# released.
model = dict(
    type='BEiT',
    data_preprocessor=dict(
        type='TwoNormDataPreprocessor',
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        second_mean=[-31.875, -31.875, -31.875],
        second_std=[318.75, 318.75, 318.75],
        to_rgb=True,
    ),
    backbone=dict(
        type='mmclca.StemBEiTViT',
        stem=dict(type='mmclca.HMLPStem', norm_cfg=dict(type='BN')),
        arch='base',
        img_size=224,
        patch_size=16,
        drop_path_rate=0.1,
        final_norm=True,
        out_type='raw',
        layer_scale_init_value=0.1,
        init_cfg=[
            dict(type='TruncNormal', std=0.02, layer='Linear'),
            dict(type='Constant', layer='LayerNorm', val=1.0, bias=0.0),
        ],
    ),
    head=dict(
        type='BEiTV1Head',
        embed_dims=768,
        num_embed=8192,
        loss=dict(type='CrossEntropyLoss'),
    ),
    target_generator=dict(
        type='DALL-E',
        init_cfg=dict(
            type='Pretrained',
            checkpoint='https://mmassets.onedl.ai/mmselfsup/1.x/'
            'target_generator_ckpt/dalle_encoder.pth',
        ),
    ),
)
