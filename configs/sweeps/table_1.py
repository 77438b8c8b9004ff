# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Table I of the CLCA paper: ViT and DeiT with all their tokens, and CLCA with
# EViT at keep rates 0.1 and 0.7 on each backbone, for the paper does not name
# that of its rows. 180 runs.
# Command: python tools/sweep.py configs/sweeps/table_1.py
datasets = ['cotton80', 'soyageing', 'soyglobal']
methods = ['EViT']
sizes = [448]
seeds = [1, 2, 3]
blocks = [
    dict(
        backbones=['vit-base-p16', 'deit-base-p16'],
        keep_rates=[1.0],
        clca=['base'],
    ),
    dict(
        backbones=[
            'vit-base-p16',
            'deit-base-p16',
            'deit3-base-p16',
            'deit3-in21k-base-p16',
            'miil-base-p16',
            'mocov3-base-p16',
            'dino-base-p16',
            'mae-base-p16',
            'clip-base-p16',
        ],
        keep_rates=[0.1, 0.7],
        clca=['clca'],
    ),
]
