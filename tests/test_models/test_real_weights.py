# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""ImageNet weights on leaf photos give the logits of timm's models."""

import numpy as np
import pytest
import timm
import torch
from PIL import Image

from mmclca.checkpoints.load import load
from mmclca.registry import MODELS

IMAGENET = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
HALF = ([0.5] * 3, [0.5] * 3)
CLCA = dict(
    reducer=dict(type='mmclca.EViT', keep_rate=0.7),
    reduce_at=(3, 6, 9),
    cache=dict(type='mmclca.CrossLayerCache'),
)
CASES = (  # file, mean and standard deviation, size
    ('deit_tiny_patch16_224.pth', IMAGENET, (224, 224)),
    ('vit_tiny_patch16_224.safetensors', HALF, (224, 448)),
)


def leaves(shared, size, mean, std):
    """Two leaves, (2, 3, H, W)."""
    images = shared / 'data' / 'leaf40_white' / 'images'
    paths = sorted(images.glob('*/*.jpg'))[::200][:2]
    if not paths:
        pytest.skip(f'{images} holds no leaves')
    height, width = size
    batch = [Image.open(p).resize((width, height)) for p in paths]
    batch = torch.from_numpy(np.stack(batch)).permute(0, 3, 1, 2) / 255
    mean, std = (torch.tensor(v).view(3, 1, 1) for v in (mean, std))
    return (batch - mean) / std


def ours(size, **backbone):
    return MODELS.build(
        dict(
            type='mmclca.TokenReductionClassifier',
            backbone=dict(
                type='mmclca.TokenReductionViT',
                arch='deit-tiny',
                img_size=size,
                **backbone,
            ),
            head=dict(
                type='VisionTransformerClsHead',
                num_classes=1000,
                in_channels=192,
            ),
        )
    ).eval()


@torch.no_grad()
@pytest.mark.parametrize('file, normalization, size', CASES)
def test_logits_equal_timm(file, normalization, size, shared):
    """And a CLCA model keeps the predictions."""
    path = shared / 'weights' / file
    if not path.is_file():
        pytest.skip(f'{path} is not there')
    there = timm.create_model(
        path.stem,
        img_size=size,
        pretrained=True,
        pretrained_cfg_overlay=dict(file=str(path), custom_load=False),
    ).eval()
    here, clca = ours(size), ours(size, **CLCA)
    load(here, str(path), strict=False)
    load(clca, str(path), strict=False)
    assert torch.equal(clca.backbone.cache.clr, here.backbone.cls_token)
    x = leaves(shared, size, *normalization)
    expected, logits = there(x), here(x)
    assert expected.std() > 0.5  # trained weights give confident scores
    assert (logits - expected).abs().max() <= 1e-4
    assert torch.cosine_similarity(clca(x), logits).min() > 0.4
