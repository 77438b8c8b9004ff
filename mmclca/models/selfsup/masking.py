# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Visible patches of masked autoencoders and the encoded tokens."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn

from mmclca.errors import Error
from mmclca.utils.messages import check_number

from ..distillation.layers import LayerFeatures


class Encoded(LayerFeatures):
    """Encoder tokens of the visible patches of images.

    ``inputs`` are CLS and the visible patches, with positions, before the
    first layer and after each one, (B, 1 + V, C). ``ids_shuffle`` is the
    random order of the patches of each image, (B, N); the first V are visible.
    """

    @property
    def ids_restore(self) -> Tensor:
        """Patch positions in ``ids_shuffle``, (B, N)."""
        return self.ids_shuffle.argsort(dim=1)

    @property
    def mask(self) -> Tensor:
        """1 for a masked patch, else 0, (B, N)."""
        num_visible = self.inputs[0].size(1) - 1
        return (self.ids_restore >= num_visible).float()


def count_visible(num_patches: int, mask_ratio: float) -> int:
    """Count the visible patches; raise Error if all or none are."""
    check_number(mask_ratio=mask_ratio)
    num_visible = int(num_patches * (1 - mask_ratio))
    if not 0 < num_visible < num_patches:
        raise Error(
            f'mask_ratio={mask_ratio!r} leaves {num_visible} of {num_patches} '
            'patches visible; it must mask some, but not all'
        )
    return num_visible


@contextmanager
def fixed_masks(model: nn.Module, ids_shuffle: Tensor) -> Iterator[None]:
    """Make all encoders of a model mask the same patches, in a ``with`` block.

    The teacher uses the mask of its student.

    Args:
        model (nn.Module): Model for pre-training.
        ids_shuffle (Tensor): See :class:`Encoded`, (B, N).
    """
    encoders = [m for m in model.modules() if hasattr(m, 'fixed_shuffle')]
    for encoder in encoders:
        encoder.fixed_shuffle = ids_shuffle
    try:
        yield
    finally:
        for encoder in encoders:
            encoder.fixed_shuffle = None
