# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Table I of the CLCA paper: ViT and DeiT with all their tokens, and CLCA with
# EViT at keep rates 0.1 and 0.7 on each backbone, as the paper does not
# name the backbones. 180 runs.
# Command: python tools/sweep.py configs/sweeps/table_1.py
_base_ = '../_base_/sweeps/paper.py'
datasets = ['cotton80', 'soyageing', 'soyglobal']
methods = ['EViT']
sizes = [448]
blocks = [
    dict(
        backbones=['vit-base-p16', 'deit-base-p16'],
        keep_rates=[1.0],
        clca=['base'],
    ),
    dict(keep_rates=[0.1, 0.7], clca=['clca']),
]
