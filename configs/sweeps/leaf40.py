# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Does CLCA help with three photos per class? EViT at four keep rates with
# CLC, CLA, both and neither; three other methods with both and with neither;
# the two reducers closest to the frozen full ViT with two seeds.
# Results: docs/results/leaf40.md.
# Command: python tools/sweep.py configs/sweeps/leaf40.py --jobs 2
# The environment variables MMCLCA_DATA and MMCLCA_WEIGHTS name the folders
# of data sets and of weights.
datasets = ['leaf40']
backbones = ['deit-tiny-p16']
sizes = [224]
seeds = [1, 2, 3]
blocks = [
    dict(
        methods=['EViT'],
        keep_rates=[1.0, 0.5, 0.25, 0.1],
        clca=['base', 'cla', 'clc', 'clca'],
    ),
    dict(
        methods=['ToMe', 'ATS', 'SiT'],
        keep_rates=[0.25],
        clca=['base', 'clca'],
    ),
    dict(
        methods=['ATC', 'MCTF'],
        keep_rates=[0.5, 0.1],
        clca=['base', 'cla', 'clc', 'clca'],
        seeds=[1, 2],
    ),
]
weights = {
    'deit-tiny-p16': '{{$MMCLCA_WEIGHTS:weights}}/deit_tiny_patch16_224.pth'
}
# the images are small and decoded only once: separate worker processes would
# only compete with the training
options = {'train_dataloader.num_workers': 0, 'test_dataloader.num_workers': 0}
