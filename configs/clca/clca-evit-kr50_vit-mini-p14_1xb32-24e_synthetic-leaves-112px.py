# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# CLCA with EViT, keep rate 0.5: a small ViT from scratch on synthetic leaves.
# Reproduces: nothing in the paper; the demo, a few minutes on a CPU.
# Expected: not reported in the paper.
# Evaluation: val split while training; test split, best checkpoint.
# Cost: 0.07 GMACs, 1.67 M parameters.
# Command: python tools/dataset_converters/synthetic_leaves.py \
#   data/synthetic_leaves --per-class 220 --size 160
# python tools/train.py \
#  configs/clca/clca-evit-kr50_vit-mini-p14_1xb32-24e_synthetic-leaves-112px.py
_base_ = [
    '../_base_/models/clca-evit_vit-mini-p14.py',
    '../_base_/datasets/synthetic-leaves_112.py',
    '../_base_/schedules/clca_50e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    backbone=dict(reducer=dict(keep_rate=0.5)),
    head=dict(num_classes=_base_.num_classes),
)
# from scratch: ten times the paper's learning rate, and a longer warm-up
optim_wrapper = dict(optimizer=dict(lr=1e-3), clip_grad=dict(max_norm=1.0))
param_scheduler = [
    dict(
        type='mmclca.WarmupCosineLR',
        T_max=24,
        warmup=3,
        convert_to_iter_based=True,
    )
]
train_cfg = dict(max_epochs=24, val_interval=2)
default_hooks = dict(
    logger=dict(interval=20),
    checkpoint=dict(interval=24, save_best='accuracy/top1'),
)
