# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The second view of CLE-ViT: erased, cut and permuted."""

from collections.abc import Sequence
from copy import deepcopy
from math import prod

import numpy as np
import torch
from mmcv.transforms import BaseTransform
from mmengine.dataset import Compose
from mmpretrain.datasets.transforms import RandomErasing
from mmpretrain.models.utils import to_2tuple
from torch import Tensor

from mmclca.errors import Error
from mmclca.registry import TRANSFORMS


@TRANSFORMS.register_module()
class ShuffledView(BaseTransform):
    """Add a shuffled view next to the plain view of an image.

    Both views are augmented by ``transforms``, with independent random values.
    In the second view a rectangle is erased, and the image is cut into parts,
    which are permuted. `CLE-ViT: Contrastive Learning Encoded Transformer for
    Ultra-Fine-Grained Visual Categorization
    <https://doi.org/10.24963/ijcai.2023/504>`_.
    :class:`CLEViTClassifier` separates the views, left and right.

    **Required and modified keys:** img, and the keys that ``transforms`` need.

    Args:
        transforms (list[dict]): Augmentations with a constant output size.
        parts (int | tuple[int, int]): Parts per side, or columns and rows.
            Defaults to 2, as in all public recipes.
        min_area_ratio (float): Minimum erased fraction of the image area.
            Defaults to 0.15.
        max_area_ratio (float): Maximum erased fraction. Defaults to 0.45.
        aspect_range (Sequence[float]): Range of height / width for the
            rectangle. Defaults to (0.3, 3.3).
        fill_color (Sequence[float]): Fill color in the channel order of the
            image. Defaults to ImageNet's mean as BGR, which normalization maps
            to 0.

    Raises:
        Error: In a pipeline, if the image size is not divisible into
            equal parts.
    """

    def __init__(
        self,
        transforms: list[dict],
        parts: int | tuple[int, int] = 2,
        min_area_ratio: float = 0.15,
        max_area_ratio: float = 0.45,
        aspect_range: Sequence[float] = (0.3, 3.3),
        fill_color: Sequence[float] = (103.53, 116.28, 123.675),
    ):
        self.augment = Compose([TRANSFORMS.build(t) for t in transforms])
        self.parts = to_2tuple(parts)
        self.erase = RandomErasing(
            erase_prob=1.0,
            min_area_ratio=min_area_ratio,
            max_area_ratio=max_area_ratio,
            aspect_range=aspect_range,
            fill_color=fill_color,
        )

    def transform(self, results: dict) -> dict:
        """Augment an image twice, (H, W, 3) to (H, 2W, 3)."""
        second = self.erase(self.augment(deepcopy(results)))
        results = self.augment(results)
        views = results['img'], self._shuffled(second['img'])
        results['img'] = np.concatenate(views, axis=1)
        return results

    def _shuffled(self, img: np.ndarray) -> np.ndarray:
        """Permute the parts of an image (H, W, 3) at random."""
        image = torch.from_numpy(img.copy()).permute(2, 0, 1)
        order = np.random.permutation(prod(self.parts)).tolist()
        image = shuffle_parts(image, self.parts, order)
        return image.permute(1, 2, 0).numpy()


def shuffle_parts(
    image: Tensor,
    parts: int | tuple[int, int],
    permutation: Sequence[int] | Tensor,
) -> Tensor:
    """Cut an image (C, H, W) into equal parts and permute them.

    ``parts`` is a number per side, or columns and rows. Part i in the new
    image is part ``permutation[i]`` in the old one, row by row.
    """
    columns, rows = (parts, parts) if isinstance(parts, int) else parts
    height, width = image.shape[-2:]
    if rows < 1 or columns < 1 or height % rows or width % columns:
        raise Error(
            f'parts={parts!r} does not divide the image of {height} x {width} '
            'px (height x width)'
        )
    order = torch.as_tensor(permutation, device=image.device)
    if sorted(order.tolist()) != [*range(rows * columns)]:
        raise Error(
            f'permutation={order.tolist()} must contain each of 0 to '
            f'{rows * columns - 1} once'
        )
    cut = image.unflatten(-1, (columns, -1)).unflatten(-3, (rows, -1))
    cut = cut.permute(1, 3, 0, 2, 4).flatten(0, 1)[order]
    cut = cut.unflatten(0, (rows, columns)).permute(2, 0, 3, 1, 4)
    return cut.reshape(image.shape)
