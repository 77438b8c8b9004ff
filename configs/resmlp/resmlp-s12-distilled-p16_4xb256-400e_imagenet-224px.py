# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ResMLP-S12/16 with a teacher, from scratch on ImageNet-1k, 224 px: its one
# classifier learns labels and a RegNetY's predictions.
# Reproduces: ResMLP's distillation (Touvron's thesis, section 4.3).
# Expected: not measured; quoted from the thesis: 77.8 % top-1.
# Evaluation: validation split, last checkpoint.
# Cost: 3.01 GMACs, 15.35 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/resmlp/resmlp-s12-distilled-p16_4xb256-400e_imagenet-224px.py 4
_base_ = [
    '../_base_/models/resmlp-s12-p16.py',
    '../_base_/datasets/imagenet-resmlp_224.py',
    '../_base_/schedules/resmlp_400e.py',
    '../_base_/teachers/regnety-160.py',
    '../_base_/default_runtime.py',
]
model = dict(
    type='mmclca.DistilledClassifier',
    data_preprocessor=dict(num_classes=_base_.num_classes),
    head=dict(loss=_base_.loss),
    train_cfg=_base_.mixup,
    teacher=_base_.teacher,
)
load_from = None
