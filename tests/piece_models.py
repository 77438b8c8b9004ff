# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The backbones of ``configs/_base_/models``, and timm's models of them."""

from copy import deepcopy

import timm
import torch
from every_config import FOLDER as CONFIGS
from every_config import read
from timm.models.vision_transformer import checkpoint_filter_fn

from mmclca.registry import MODELS

FOLDER = CONFIGS / '_base_/models'
NAMES = {  # of pieces, and of timm's models
    'vit-base-p16': 'vit_base_patch16_224.orig_in21k',
    'deit-base-p16': 'deit_base_patch16_224.fb_in1k',
    'deit3-base-p16': 'deit3_base_patch16_224.fb_in1k',
    'deit3-in21k-base-p16': 'deit3_base_patch16_224.fb_in22k_ft_in1k',
    'miil-base-p16': 'vit_base_patch16_224_miil.in21k',
    'mocov3-base-p16': 'vit_base_patch16_224',  # the architecture only
    'dino-base-p16': 'vit_base_patch16_224.dino',
    'mae-base-p16': 'vit_base_patch16_224.mae',
    'clip-base-p16': 'vit_base_patch16_clip_224.laion2b',
    'vit-augreg-base-p16': 'vit_base_patch16_224.augreg_in21k',
    'vit-tiny-p16': 'vit_tiny_patch16_224.augreg_in21k',
    'vit-small-p16': 'vit_small_patch16_224.augreg_in21k',
    'deit-tiny-p16': 'deit_tiny_patch16_224.fb_in1k',
    'deit-small-p16': 'deit_small_patch16_224.fb_in1k',
    'dinov2-small-p14': 'vit_small_patch14_dinov2.lvd142m',
    'dinov2-base-p14': 'vit_base_patch14_dinov2.lvd142m',
    'dinov2-reg-small-p14': 'vit_small_patch14_reg4_dinov2.lvd142m',
    'dinov2-reg-base-p14': 'vit_base_patch14_reg4_dinov2.lvd142m',
}
SMALL = dict(embed_dim=16, depth=2, num_heads=2)
ARCH = dict(embed_dims=16, num_layers=2, num_heads=2, feedforward_channels=64)
PLAIN = dict(
    reducer=None, reduce_at=(), cache=None, out_indices=-1, final_norm=True
)


def piece(backbone):
    """The config of a model piece."""
    return deepcopy(read(FOLDER / f'clca-evit_{backbone}.py'))


def ours(backbone, img_size, num_classes=5, small=True):
    """A plain classifier on the backbone of a piece, float64."""
    model = piece(backbone).model
    options = {**model.backbone, **PLAIN, 'img_size': img_size}
    channels = model.head.in_channels
    if small:
        options, channels = dict(options, arch=ARCH), ARCH['embed_dims']
    head = dict(
        type='VisionTransformerClsHead',
        num_classes=num_classes,
        in_channels=channels,
    )
    model = dict(
        type='mmclca.TokenReductionClassifier', backbone=options, head=head
    )
    return MODELS.build(model).double().eval()


def theirs(backbone, num_classes=5, **options):
    """timm's model of a piece, random; every parameter matters. float64."""
    model = timm.create_model(
        NAMES[backbone], num_classes=num_classes, **dict(SMALL, **options)
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model.double().eval()


def resized(backbone, weights, img_size, **options):
    """timm's model for images of a size, with weights in a form it knows."""
    model = theirs(backbone, img_size=img_size, **options)
    model.load_state_dict(checkpoint_filter_fn(dict(weights), model))
    return model


def differences(here, there, img_size):
    """Largest ones between CLS tokens, and between logits."""
    x = torch.randn(1, 3, img_size, img_size, dtype=torch.float64)
    with torch.no_grad():
        tokens = there.forward_features(x)
        features = (here.backbone(x)[0] - tokens[:, 0]).abs().max()
        logits = (here(x) - there.forward_head(tokens)).abs().max()
    return features, logits
