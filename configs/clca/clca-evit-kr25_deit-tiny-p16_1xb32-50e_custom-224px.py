# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# CLCA with EViT, keep rate 0.25.
# DeiT-Ti/16 (ImageNet-1k) on a folder of your own images, 224 px.
# Reproduces: the recipe of the CLCA paper, on your images.
# Expected: not reported.
# Evaluation: validation list, every five epochs; the best checkpoint is kept,
# the last of equally good ones.
# Cost: 0.51 GMACs, 5.53 M parameters.
# Command: python tools/train.py \
#   configs/clca/clca-evit-kr25_deit-tiny-p16_1xb32-50e_custom-224px.py \
#   --cfg-options model.head.num_classes=N  (lines of classes.txt)
_base_ = [
    '../_base_/models/clca-evit_deit-tiny-p16.py',
    '../_base_/datasets/custom_224.py',
    '../_base_/schedules/clca_50e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    backbone=dict(reducer=dict(keep_rate=0.25)),
    head=dict(num_classes=_base_.num_classes),
)
train_cfg = dict(val_interval=5)
default_hooks = dict(
    checkpoint=dict(
        type='mmclca.AtomicCheckpointHook',
        save_best='accuracy/top1',
        keep_last_best=True,
    )
)
