# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# SIM-Trans: ViT-B/16, trained on ImageNet-21k, patches of 16 px every 12 px,
# the last block new; dropout and contrastive loss as in the public code.
_base_ = './transfg_vit-base-p16.py'
model = dict(
    contrast='sim_trans',
    backbone=dict(type='mmclca.SIMTrans'),
    head=dict(type='mmclca.SIMTransHead'),
)
