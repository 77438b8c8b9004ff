# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What a model that pools by class attention reads, by whatever part."""

from math import ceil

from torch import Tensor, nn


def class_attention(model: nn.Module, images: Tensor) -> list[Tensor]:
    """How much the class tokens of a model read of each place of images.

    The model is used in its present mode; call ``eval()`` first.

    Args:
        model (nn.Module): A classifier whose backbone, or neck, has a method
            ``class_attention``: :class:`PatchConvNet`, :class:`CaiT`,
            :class:`AttentionPool` on any convolutional network.
        images (Tensor): Preprocessed images, (B, 3, H, W).

    Returns:
        list[Tensor]: Of each class layer the rows of its softmax, (B, heads,
        K, N) for K class tokens, with their own keys first where they read
        themselves.

    Raises:
        ValueError: If nothing in the model pools by class attention.
    """
    rows = []
    if hasattr(model.backbone, 'class_attention'):
        rows = model.backbone.class_attention(images)
    elif _pools_in_neck(model):
        rows = model.neck.class_attention(model.backbone(images))
    if not rows:
        raise ValueError(
            f'{type(model.backbone).__name__} does not pool by class '
            'attention here: take mmclca.PatchConvNet, mmclca.CaiT, or the '
            'neck mmclca.AttentionPool'
        )
    return rows


def pooled_grid(model: nn.Module, images: Tensor) -> tuple[int, int]:
    """Height and width of the grid that :func:`class_attention` reads.

    Args:
        model (nn.Module): See there.
        images (Tensor): See there.
    """
    if _pools_in_neck(model):
        return tuple(model.backbone(images)[-1].shape[-2:])
    sides = zip(images.shape[-2:], model.backbone.stride, strict=True)
    return tuple(ceil(pixels / patch) for pixels, patch in sides)


def _pools_in_neck(model: nn.Module) -> bool:
    return model.with_neck and hasattr(model.neck, 'class_attention')
