# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# The nine backbones and the seeds of the CLCA paper.
backbones = [
    'vit-base-p16',
    'deit-base-p16',
    'deit3-base-p16',
    'deit3-in21k-base-p16',
    'miil-base-p16',
    'mocov3-base-p16',
    'dino-base-p16',
    'mae-base-p16',
    'clip-base-p16',
]
seeds = [1, 2, 3]
