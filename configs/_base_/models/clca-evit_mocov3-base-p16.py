# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ViT-B/16 of MoCo v3, trained on ImageNet-1k without labels: the checkpoint
# after linear evaluation, which leaves the pre-trained encoder unchanged.
_base_ = './clca-evit_vit-base-p16.py'
load_from = (
    'https://dl.fbaipublicfiles.com/moco-v3/vit-b-300ep/'
    'linear-vit-b-300ep.pth.tar'
)
