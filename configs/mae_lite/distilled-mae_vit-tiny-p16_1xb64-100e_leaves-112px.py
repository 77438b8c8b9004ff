# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# MAE-Lite on unlabeled leaves, 112 px, with attention distillation from
# mae_vit-small-p16_1xb64-100e_leaves-112px, trained first.
# Reproduces: nothing.
# Expected: docs/results/pretraining.md, 40 minutes each.
# Evaluation: none; configs/sweeps/pretraining.py fine-tunes the checkpoint.
# Cost: of whole images 0.28 GMACs, 5.71 M parameters.
# Command: python tools/train.py \
#   configs/mae_lite/distilled-mae_vit-tiny-p16_1xb64-100e_leaves-112px.py
_base_ = [
    '../_base_/models/distilled-mae_vit-tiny-p16.py',
    '../_base_/datasets/leaves-unlabelled_112.py',
    '../_base_/schedules/pretraining-leaves_100e.py',
    '../_base_/pretraining_runtime.py',
]
model = dict(
    backbone=dict(img_size=112),
    neck=dict(num_patches=49),
    teacher=dict(
        backbone=dict(
            _delete_=True,
            type='mmclca.SegmentedMAEViT',
            arch=dict(
                embed_dims=384,
                num_layers=12,
                num_heads=12,
                feedforward_channels=1536,
            ),
            patch_size=16,
        ),
        checkpoint='work_dirs/mae_vit-small-p16_1xb64-100e_leaves-112px/'
        'epoch_100.pth',
    ),
)
