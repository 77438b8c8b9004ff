# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Fig. 4 of the CLCA paper: the largest gradients through training on SoyLocal,
# DeiT III, with each of CLC and CLA and both. The paper does not name method,
# keep rate and size: EViT at 0.1 and 448 px stand here. 12 runs.
# Command: python tools/sweep.py configs/sweeps/fig_4.py
datasets = ['soylocal']
backbones = ['deit3-base-p16']
methods = ['EViT']
keep_rates = [0.1]
sizes = [448]
clca = ['base', 'cla', 'clc', 'clca']
seeds = [1, 2, 3]
