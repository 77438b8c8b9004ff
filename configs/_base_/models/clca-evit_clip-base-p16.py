# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# The image tower of CLIP ViT-B/16, trained on LAION-2B. As in the authors'
# code, images are normalized as for ImageNet, not as in CLIP.
_base_ = './clca-evit_vit-base-p16.py'
model = dict(backbone=dict(pre_norm=True, norm_cfg=dict(type='LN', eps=1e-5)))
load_from = 'timm://vit_base_patch16_clip_224.laion2b'
