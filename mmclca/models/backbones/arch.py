# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Check an architecture, and cut and number its layers."""

from collections.abc import Collection, Sequence

from mmclca.utils.known_names import not_one_of

SIZES = ('embed_dims', 'num_layers', 'num_heads', 'feedforward_channels')


def check_arch(
    arch: str | dict, known: Collection[str], sizes: Collection[str] = SIZES
) -> None:
    """Refuse an architecture that a backbone does not know.

    Raises:
        ValueError: If there is no such name, a size is missing or not known,
            or heads do not divide the channels; tells what it could be.
    """
    if not isinstance(arch, dict):
        if str(arch).lower() not in known:
            raise ValueError(f'arch: {not_one_of(arch, known)}')
        return
    missing = [name for name in sizes if name not in arch]
    others = [name for name in arch if name not in sizes]
    if others and not missing:
        raise ValueError(f'arch: {not_one_of(others[0], sizes)}')
    if missing:
        hint = f'; {not_one_of(others[0], sizes)}' if others else ''
        raise ValueError(f'arch={arch!r} lacks {", ".join(missing)}{hint}')
    heads, dims = arch.get('num_heads', 1), arch['embed_dims']
    if dims % heads:
        raise ValueError(
            f'arch: num_heads={heads} does not divide embed_dims={dims}: give '
            'a number of heads that does'
        )


def settings_of(
    arch: str | dict, zoo: dict[str, dict], sizes: Collection[str] = SIZES
) -> dict:
    """The settings of an architecture.

    Raises:
        ValueError: See :func:`check_arch`.
    """
    check_arch(arch, zoo, sizes)
    return arch if isinstance(arch, dict) else zoo[str(arch).lower()]


def first_layers(
    arch: str | dict, depth: int | None, arch_zoo: dict[str, dict]
) -> tuple[str | dict, tuple[str, ...]]:
    """An architecture cut after some layers.

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
