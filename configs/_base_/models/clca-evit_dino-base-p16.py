# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ViT-B/16 of DINO, trained on ImageNet-1k without labels: the teacher network.
_base_ = './clca-evit_vit-base-p16.py'
load_from = 'timm://vit_base_patch16_224.dino'
