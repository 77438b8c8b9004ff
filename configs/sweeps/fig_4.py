# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Fig. 4 of the CLCA paper: the largest gradients during training on SoyLocal,
# DeiT III, with CLC, CLA, both and neither. The paper does not specify method,
# keep rate and image size; EViT at 0.1 and 448 px are used here. 12 runs.
# Command: python tools/sweep.py configs/sweeps/fig_4.py
datasets = ['soylocal']
backbones = ['deit3-base-p16']
methods = ['EViT']
keep_rates = [0.1]
sizes = [448]
clca = ['base', 'cla', 'clc', 'clca']
seeds = [1, 2, 3]
