# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Convert preprocessed images of a student for its teacher."""

from typing import Any

import torch.nn.functional as F
from mmengine.logging import MMLogger
from mmpretrain.models import BaseClassifier
from mmpretrain.models.utils import to_2tuple
from torch import Tensor, nn

from ..reduction.attention import at_least_float32

CHANNELS = (1, 3, 1, 1)


def find_image_size(model: nn.Module) -> int | tuple[int, int] | None:
    """Return the input size of a classifier, or None if it accepts any.

    timm stores the size in the patch embedding of a backbone.
    """
    backbone: Any = dict(model.named_children()).get('backbone', model)
    sizes = (m.img_size for m in backbone.modules() if hasattr(m, 'img_size'))
    return next(sizes, None)


def rescaling(
    student: BaseClassifier, teacher: BaseClassifier
) -> tuple | None:
    """Return the conversion of normalized images for the teacher.

    It consists of a flag (flip the channels) and a scale and a shift per
    channel. None: both normalize equally, or only one defines a normalization.
    """
    ours, theirs = (m.data_preprocessor for m in (student, teacher))
    if not (ours._enable_normalize and theirs._enable_normalize):
        if ours._enable_normalize or theirs._enable_normalize:
            MMLogger.get_current_instance().warning(
                'teacher: only one of teacher and student defines a '
                'normalization; both get the images of the student'
            )
        return None
    flip = ours.to_rgb != theirs.to_rgb
    mean, std = (x.double().expand(3, 1, 1) for x in (ours.mean, ours.std))
    if flip:
        mean, std = mean.flip(0), std.flip(0)
    scale = (std / theirs.std).view(CHANNELS)
    shift = ((mean - theirs.mean) / theirs.std).view(CHANNELS)
    is_equal = not flip and (scale == 1).all() and (shift == 0).all()
    return None if is_equal else (flip, scale, shift)


def convert_images(inputs: Tensor, rescale: tuple | None, size) -> Tensor:
    """Convert the student's images (B, 3, H, W) for the teacher.

    Args:
        inputs (Tensor): Normalized images.
        rescale (tuple, optional): Result of :func:`rescaling`. None: the
            values stay.
        size (int | tuple, optional): Image size of the teacher. None: the size
            stays.
    """
    x = inputs
    if rescale is not None:
        flip, scale, shift = rescale
        x = x.flip(1) if flip else x
        x = x * scale.to(x) + shift.to(x)
    size = to_2tuple(size) if size else x.shape[2:]
    if x.shape[2:] != size:
        x = F.interpolate(
            at_least_float32(x), size, mode='bicubic', antialias=True
        )
    return x.to(inputs)
