# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# CLCA with EViT, keep rate 0.5, at layers 2, 3 and 4 of six.
# ViT-Ti/16 with six layers of two parallel branches and the hMLP stem on
# leaf40, 224 px, three training images per class. No weights were
# released: FILE is your own checkpoint, such as the result of
# par-vit-tiny-6x2-hmlp-p16_8xb256-300e_imagenet-224px. Without
# one the weights are random, for which 120 images are too few.
# Reproduces: nothing.
# Expected: not measured.
# Evaluation: test split, last checkpoint.
# Cost: 0.72 GMACs, 5.44 M parameters.
# Command: python tools/train.py configs/parallel/\
#   clca-evit-kr50_par-vit-tiny-6x2-hmlp-p16_1xb32-50e_leaf40-224px.py \
#   --cfg-options load_from=FILE
_base_ = [
    '../_base_/models/par-vit-tiny-6x2-p16.py',
    '../_base_/datasets/leaf40_224.py',
    '../_base_/schedules/clca_50e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    backbone=dict(
        stem=dict(type='mmclca.HMLPStem', norm_cfg=dict(type='BN')),
        reducer=dict(type='mmclca.EViT', keep_rate=0.5),
        reduce_at=(2, 3, 4),
        cache=dict(type='mmclca.CrossLayerCache'),
        out_indices=(2, 3, 4, 5),
        final_norm=False,
    ),
    head=dict(
        _delete_=True,
        type='mmclca.CLAHead',
        num_classes=_base_.num_classes,
        in_channels=192,
        num_layers=4,
    ),
)
