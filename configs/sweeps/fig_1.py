# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Fig. 1 of the CLCA paper: accuracy against GMACs by keep rate and image size
# on SoyGene, DeiT III with EViT. 60 runs.
# Command: python tools/sweep.py configs/sweeps/fig_1.py
datasets = ['soygene']
backbones = ['deit3-base-p16']
methods = ['EViT']
keep_rates = [0.1, 0.25, 0.5, 0.7, 1.0]
sizes = [224, 448]
clca = ['base', 'clca']
seeds = [1, 2, 3]
