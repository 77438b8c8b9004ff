# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# A row of the study of where CLS enters (Touvron's thesis, Table 3.13): DeiT-S
# without LayerScale, CLS before the first layer.
# For the other rows: model.backbone.cls_at=2, 4, 8, 10 or 11; or, with
# model.backbone.cls_at=None, model.backbone.num_class_layers=1, 2 or 3 and
# model.backbone.arch.num_layers=9 to 12. See docs/architectures.md.
# Reproduces: nothing yet; the recipe of DeiT, as in the thesis.
# Expected: not measured; quoted from the thesis: 79.9 % top-1.
# Evaluation: validation split, last checkpoint.
# Cost: 4.60 GMACs, 22.05 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/cait/cait-s12-cls0-p16_4xb256-300e_imagenet-224px.py 4
_base_ = [
    '../_base_/models/cait-xxs24-p16.py',
    '../_base_/datasets/imagenet-cait_224.py',
    '../_base_/schedules/deit_300e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    data_preprocessor=dict(num_classes=_base_.num_classes),
    backbone=dict(
        arch=dict(
            _delete_=True,
            embed_dims=384,
            num_layers=12,
            num_heads=6,
            feedforward_channels=1536,
        ),
        talking_heads=False,
        layer_scale_init_value=0.0,
        cls_at=0,
    ),
    head=dict(in_channels=384, loss=_base_.loss),
    train_cfg=_base_.mixup,
)
load_from = None
