# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# A classifier over layers 0 to 8 of a network with EViT, keep rate 0.5: fitted
# in closed form to frozen features, then fine-tuned with the network.
# DeiT-Ti/16 (ImageNet-1k) on a folder of your own images, 224 px.
# Reproduces: nothing; the recipe in docs/results/fine_tuning.md.
# Expected: not reported.
# Evaluation: validation list, every five epochs; the best checkpoint is kept,
# the last of equally good ones.
# Cost: 0.59 GMACs, 4.21 M parameters.
# Command: python tools/train.py \
#   configs/few_shot/lf-evit-kr50_deit-tiny-p16_1xb32-20e_custom-224px.py \
#   --cfg-options model.head.num_classes=N  (lines of classes.txt)
_base_ = [
    '../_base_/models/lf-evit_deit-tiny-p16.py',
    '../_base_/datasets/custom_224.py',
    '../_base_/schedules/few_shot_20e.py',
    '../_base_/default_runtime.py',
]
model = dict(head=dict(num_classes=_base_.num_classes))
train_cfg = dict(val_interval=5)
default_hooks = dict(
    checkpoint=dict(
        type='mmclca.AtomicCheckpointHook',
        save_best='accuracy/top1',
        keep_last_best=True,
    )
)
custom_hooks = [
    dict(type='mmclca.ClassCountHook'),
    dict(type='mmclca.ProbeInitHook'),
]
train_dataloader = dict(
    sampler=dict(type='mmclca.MinLengthSampler', min_samples=256)
)
