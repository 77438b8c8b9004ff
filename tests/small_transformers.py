# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Small vision transformers of every supported class in Transformers."""

import pytest
import torch
from small_timm import fill

SIZES = dict(
    hidden_size=24,
    num_hidden_layers=4,
    num_attention_heads=2,
    intermediate_size=48,
    image_size=32,
    patch_size=8,
)
CLASSIFIERS = (
    *('ViTForImageClassification', 'DeiTForImageClassification'),
    'Dinov2ForImageClassification',
    'Dinov2WithRegistersForImageClassification',
    *('CLIPForImageClassification', 'SiglipForImageClassification'),
)
NAMES = (
    *CLASSIFIERS,
    *('ViTModel', 'DeiTModel', 'Dinov2Model', 'Dinov2WithRegistersModel'),
    *('DeiTForImageClassificationWithTeacher', 'CLIPVisionModel'),
    *('CLIPVisionModelWithProjection', 'SiglipVisionModel'),
    'DINOv3ViTModel',
)


def small_transformer(name, num_labels=5, **options):
    """Build a supported model of Transformers, with random weights."""
    transformers = pytest.importorskip('transformers')
    family = name.split('For')[0].split('Model')[0].removesuffix('Vision')
    if family == 'DINOv3ViT':
        options = dict(num_register_tokens=3) | options
    options = SIZES | options
    if family in ('CLIP', 'Siglip'):
        kind = getattr(transformers, f'{family}VisionConfig')
        config = kind(**options)
        if name.endswith('ForImageClassification'):
            both = getattr(transformers, f'{family}Config')
            parts = dict(vision_config=config.to_dict())
            config = both(**parts, num_labels=num_labels)
    else:
        kind = getattr(transformers, f'{family}Config')
        config = kind(**options, num_labels=num_labels)
    return fill(getattr(transformers, name)(config))


def small_images(batch=3, size=(32, 32)):
    """Random images (B, 3, H, W), float64."""
    generator = torch.Generator().manual_seed(1)
    shape = batch, 3, *size
    return torch.randn(shape, generator=generator, dtype=torch.float64)
