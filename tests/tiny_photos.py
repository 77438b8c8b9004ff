# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Synthetic photos and small weights, for a fit in seconds."""

from safetensors.torch import save_file
from timm.models.vision_transformer import VisionTransformer
from tiny_run import write_images


def write_photos(folder, per_class=4, **options):
    """Write synthetic photos in class folders; return their parent."""
    write_images(folder / 'photographs', per_class, **options)
    return folder / 'photographs'


def write_weights(folder):
    """Write the weights of a small ViT under timm's names; return the file."""
    tiny = dict(embed_dim=64, depth=4, num_heads=1, patch_size=32)
    model = VisionTransformer(img_size=224, num_classes=3, **tiny)
    path = folder / 'tiny.safetensors'
    save_file(model.state_dict(), path)
    return path
