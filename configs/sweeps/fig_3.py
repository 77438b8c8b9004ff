# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Fig. 3 of the CLCA paper: distribution of accuracies of each method over
# backbones, keep rates and seeds. The paper specifies neither the image size
# nor its seven methods; 448 px and the eight methods of the authors' code are
# used here. 2,700 runs.
# Command: python tools/sweep.py configs/sweeps/fig_3.py
_base_ = '../_base_/sweeps/paper.py'
datasets = ['soylocal', 'soygene']
sizes = [448]
clca = ['base', 'clca']
blocks = [
    # nothing is reduced
    dict(methods=['EViT'], keep_rates=[1.0]),
    dict(
        methods=[
            'EViT',
            'TopK',
            'ToMe',
            'ATS',
            'DynamicViT',
            'SiT',
            'PatchMerger',
            'DPCKNN',
        ],
        keep_rates=[0.25, 0.5, 0.7],
    ),
]
