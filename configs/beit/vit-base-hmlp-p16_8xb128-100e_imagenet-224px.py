# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ViT-B/16 with the hMLP stem fine-tuned on ImageNet-1k after BEiT.
# FILE is the pre-trained checkpoint.
# Reproduces: Three things, table of stems, with another tokenizer and BEiT's
#   recipe.
# Expected: not measured; quoted from the paper: 83.43 % top-1.
# Evaluation: validation split, last checkpoint.
# Cost: 17.71 GMACs, 86.69 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/beit/vit-base-hmlp-p16_8xb128-100e_imagenet-224px.py 8 \
#   --cfg-options model.backbone.init_cfg.type=Pretrained \
#   model.backbone.init_cfg.prefix=backbone. \
#   model.backbone.init_cfg.checkpoint=FILE
_base_ = [
    '../_base_/models/vit-base-averaged-p16.py',
    '../_base_/datasets/imagenet-mae-finetune_224.py',
    '../_base_/schedules/mirl-finetune_100e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    type='ImageClassifier',
    data_preprocessor=dict(num_classes=_base_.num_classes),
    backbone=dict(
        _delete_=True,
        type='mmclca.StemBEiTViT',
        stem=dict(type='mmclca.HMLPStem', norm_cfg=dict(type='BN')),
        arch='base',
        img_size=224,
        patch_size=16,
        drop_path_rate=0.1,
        out_type='avg_featmap',
        use_rel_pos_bias=True,
        use_shared_rel_pos_bias=False,
        layer_scale_init_value=0.1,
    ),
    head=dict(loss=_base_.loss),
    train_cfg=_base_.mixup,
)
optim_wrapper = dict(
    optimizer=dict(lr=4e-3), paramwise_cfg=dict(layer_decay_rate=0.65)
)
param_scheduler = [
    dict(
        type='mmclca.WarmupCosineLR',
        T_max=100,
        warmup=20,
        start_factor=0.0,
        eta_min_ratio=1e-6 / 4e-3,
        convert_to_iter_based=True,
    )
]
auto_scale_lr = dict(base_batch_size=1024)
find_unused_parameters = True
sync_bn = 'torch'
