# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# BEiT of ViT-B/16 with the hMLP stem on ImageNet-1k, 224 px.
# Reproduces: Three things, table of stems, but for its tokenizer.
# Expected: not measured; quoted from the paper: 83.43 % top-1 after
#   fine-tuning, 83.05 % with the linear stem.
# Evaluation: none; see the fine-tuning.
# Cost: of whole images 17.71 GMACs, 145.91 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/beit/beit_vit-base-hmlp-p16_8xb256-300e_in1k-224px.py 8
_base_ = [
    '../_base_/models/beit_vit-base-hmlp-p16.py',
    '../_base_/datasets/imagenet-beit_224.py',
    '../_base_/schedules/beit_300e.py',
    '../_base_/pretraining_runtime.py',
]
custom_hooks = []
sync_bn = 'torch'
