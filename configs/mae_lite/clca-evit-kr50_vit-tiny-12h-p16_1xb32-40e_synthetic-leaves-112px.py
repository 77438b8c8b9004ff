# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# CLCA with EViT, keep rate 0.5, on the encoder of MAE-Lite: synthetic leaves
# of eight cultivars, 112 px. FILE is the pre-trained checkpoint, see
# demo/pretraining.sh.
# Reproduces: nothing.
# Expected: not measured.
# Evaluation: validation split, last checkpoint.
# Cost: 0.18 GMACs, 5.50 M parameters.
# Command: python tools/train.py configs/mae_lite/\
#   clca-evit-kr50_vit-tiny-12h-p16_1xb32-40e_synthetic-leaves-112px.py \
#   --cfg-options load_from=FILE
_base_ = [
    '../_base_/models/clca-evit_deit-tiny-p16.py',
    '../_base_/datasets/synthetic-leaves_112.py',
    '../_base_/schedules/scratch_40e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    backbone=dict(
        arch=dict(
            _delete_=True,
            embed_dims=192,
            num_layers=12,
            num_heads=12,
            feedforward_channels=768,
        ),
        img_size=112,
    ),
    head=dict(num_classes=_base_.num_classes),
)
load_from = None
