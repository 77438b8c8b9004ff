# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ViT-B/14 of DINOv2, trained on LVD-142M without labels. Its position
# embeddings are for images of 518 px and are resized; img_size must be a
# multiple of 14.
_base_ = './clca-evit_vit-base-p16.py'
model = dict(backbone=dict(patch_size=14, layer_scale_init_value=1e-5))
load_from = 'timm://vit_base_patch14_dinov2.lvd142m'
