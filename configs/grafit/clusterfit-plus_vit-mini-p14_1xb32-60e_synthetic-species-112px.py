# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ClusterFit+ on the four species of synthetic leaves: cross entropy of a fresh
# network on clusters of the features of another, which docs/grafit.md writes
# into clusters.txt.
# Reproduces: nothing; a baseline of Touvron's thesis, section 2.5, on another
#   set.
# Expected: not measured here.
# Evaluation: cultivars as in docs/grafit.md, last checkpoint.
# Cost: 0.12 GMACs, 1.68 M parameters.
# Command: python tools/train.py \
#   configs/grafit/\
#   clusterfit-plus_vit-mini-p14_1xb32-60e_synthetic-species-112px.py
_base_ = './cross-entropy_vit-mini-p14_1xb32-60e_synthetic-species-112px.py'
clusters = 64
model = dict(head=dict(num_classes=clusters))
train_dataloader = dict(
    dataset=dict(
        _delete_=True,
        type='CustomDataset',
        data_root=_base_.data_root,
        ann_file='clusters.txt',
        classes=[f'{n}' for n in range(clusters)],
        pipeline=_base_.train_dataloader.dataset.pipeline,
    )
)
val_dataloader = None
val_evaluator = None
val_cfg = None
