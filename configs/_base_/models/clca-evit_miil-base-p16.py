# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ViT-B/16 of ImageNet-21K Pretraining for the Masses (MIIL), trained on
# ImageNet-21k-P, without a bias of queries, keys and values. As in the
# authors' code, images are normalized as for ImageNet-1k, although these
# weights were trained with mean 0 and standard deviation 1.
_base_ = './clca-evit_vit-base-p16.py'
model = dict(backbone=dict(qkv_bias=False))
load_from = 'timm://vit_base_patch16_224_miil.in21k'
