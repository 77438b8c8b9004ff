# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# The encoder of MAE ViT-B/16, trained on ImageNet-1k without labels.
_base_ = './clca-evit_vit-base-p16.py'
load_from = 'timm://vit_base_patch16_224.mae'
