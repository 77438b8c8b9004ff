# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Layers of an architecture: the first ones, those that reduce, a depth."""

from collections.abc import Sequence


def first_layers(
    arch: str | dict, depth: int | None, arch_zoo: dict[str, dict]
) -> tuple[str | dict, tuple[str, ...]]:
    """An architecture cut after some layers.

    Args:
        arch (str | dict): Its name or settings, as mmpretrain takes them.
        depth (int, optional): Layers to keep; None keeps all.
        arch_zoo (dict[str, dict]): Settings by name.

    Returns:
        tuple[str | dict, tuple[str]]: The architecture, and what names of
        the weights that are left out begin with.

    Raises:
        ValueError: If there are not so many layers.
    """
    if depth is None:
        return arch, ()
    settings = arch_zoo[arch.lower()] if isinstance(arch, str) else arch
    total = settings['num_layers']
    if type(depth) is not int or not 1 <= depth <= total:
        raise ValueError(
            f'depth={depth!r} must be an integer from 1 to {total}, the '
            f'layers of arch={arch!r}'
        )
    left = tuple(f'layers.{layer}.' for layer in range(depth, total))
    return dict(settings, num_layers=depth), left


def checked_layers(
    reduce_at: Sequence[int] | int, num_layers: int
) -> tuple[int, ...]:
    """``reduce_at`` as a tuple; ValueError where it is not allowed."""
    listed = isinstance(reduce_at, Sequence)
    layers = tuple(reduce_at) if listed else (reduce_at,)
    inside = all(
        type(layer) is int and 0 <= layer < num_layers for layer in layers
    )
    if not inside or list(layers) != sorted(set(layers)):
        raise ValueError(
            f'reduce_at={reduce_at!r} must be ascending, different layers '
            f'(integers) within 0 to {num_layers - 1}'
        )
    return layers


def depth_in(
    stacks: dict[str, int], embedding: tuple[str, ...], name: str
) -> tuple[int, int]:
    """Depth of a parameter for layer-wise learning rates.

    Args:
        stacks (dict[str, int]): Lists of layers in the order in which they
            run, and how many layers each has.
        embedding (tuple[str]): What names of the embedding begin with.
        name (str): Name of the parameter in the backbone.

    Returns:
        tuple[int, int]: 0 for the embedding, layers from 1, the last for all
        else; and the number of depths, as mmpretrain's ``get_layer_depth``.
    """
    last = sum(stacks.values()) + 1
    if name.startswith(embedding):
        return 0, last + 1
    before = 1
    for stack, num_layers in stacks.items():
        if name.startswith(f'{stack}.'):
            return before + int(name.split('.')[1]), last + 1
        before += num_layers
    return last, last + 1
