# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""ImageNet weights on leaf photos give the logits of timm's models."""

import numpy as np
import pytest
import timm
import torch
from PIL import Image

from mmclca.checkpoints.loading import load_checkpoint
from mmclca.registry import MODELS

IMAGENET = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
HALF = ([0.5] * 3, [0.5] * 3)
CASES = {  # file: timm's name, mean and standard deviation
    'deit_tiny_patch16_224.pth': ('deit_tiny_patch16_224', IMAGENET),
    'vit_tiny_patch16_224.safetensors': ('vit_tiny_patch16_224', HALF),
}


@pytest.fixture(params=CASES)
def weights(request, shared):
    path = shared / 'weights' / request.param
    if not path.is_file():
        pytest.skip(f'{path} is not there')
    return path


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


@pytest.mark.parametrize(
    'size, bound', [((224, 224), 1e-5), ((224, 448), 1e-4)]
)
def test_logits_equal_timm(weights, size, bound, shared):
    name, (mean, std) = CASES[weights.name]
    there = timm.create_model(
        name,
        img_size=size,
        pretrained=True,
        pretrained_cfg_overlay=dict(file=str(weights), custom_load=False),
    ).eval()
    here = ours(size)
    load_checkpoint(here, str(weights))
    x = leaves(shared, size, mean, std)
    with torch.no_grad():
        expected, logits = there(x), here(x)
    assert expected.std() > 0.5  # trained weights give confident scores
    assert (logits - expected).abs().max() <= bound


def test_clca_model_loads_weights_and_keeps_predictions(weights, shared):
    size = (224, 224)
    here = ours(
        size,
        reducer=dict(type='mmclca.EViT', keep_rate=0.7),
        reduce_at=(3, 6, 9),
        cache=dict(type='mmclca.CrossLayerCache'),
    )
    load_checkpoint(here, str(weights), strict=True)
    plain = ours(size)
    load_checkpoint(plain, str(weights))
    assert torch.equal(here.backbone.cache.clr, plain.backbone.cls_token)
    _, (mean, std) = CASES[weights.name]
    x = leaves(shared, size, mean, std)
    with torch.no_grad():
        same = torch.cosine_similarity(here(x), plain(x))
    assert same.min() > 0.4
