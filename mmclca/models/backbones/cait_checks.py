# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What settings a CaiT refuses."""

from ..reduction.reducers import TokenReducer
from .reducible import Reducible


def check_cls_at(
    cls_at: int | None, num_layers: int, num_class_layers: int
) -> None:
    """Refuse a CLS that would read nothing.

    Args:
        cls_at (int, optional): The patch layer at which it enters.
        num_layers (int): Patch layers.
        num_class_layers (int): Layers of class attention after them.

    Raises:
        ValueError: If there is no such layer, or no layer that reads.
    """
    if cls_at is not None and cls_at not in range(num_layers):
        raise ValueError(
            f'cls_at={cls_at!r} is no layer: give one of 0 to '
            f'{num_layers - 1}, or None for CLS after the patch layers'
        )
    if cls_at is None and num_class_layers < 1:
        raise ValueError(
            f'num_class_layers={num_class_layers!r}: CLS would read nothing, '
            'give 1 or more, or the layer at which it enters, cls_at'
        )


def check_masks(reducer: TokenReducer) -> None:
    """Refuse a reducer that leaves masked tokens behind.

    Raises:
        ValueError: If it replaces the softmax.
    """
    kind = type(reducer)
    if kind.softmax is not TokenReducer.softmax:
        raise ValueError(
            f'{kind.__name__} masks tokens in training, which talking heads '
            'and class attention would read all the same: use a reducer that '
            'leaves none behind, such as ToMe'
        )


def check_reduction(cait: Reducible) -> None:
    """Refuse a reduction that a CaiT cannot go with.

    Raises:
        ValueError: If CLS enters between the layers.
    """
    if cait.cls_at and cait.reduce_at:
        raise ValueError(
            f'cls_at={cait.cls_at} with reduce_at={cait.reduce_at}: the first '
            'tokens to be reduced would lack CLS, only cls_at=0 or None is '
            'allowed beside a reduction'
        )
