# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Whether an architecture is one."""

from collections.abc import Collection

from mmclca.utils.known_names import not_one_of

SIZES = ('embed_dims', 'num_layers', 'num_heads', 'feedforward_channels')


def check_arch(
    arch: str | dict, known: Collection[str], sizes: Collection[str] = SIZES
) -> None:
    """Refuse an architecture that a backbone does not know.

    Args:
        arch (str | dict): Its name or settings.
        known (Collection[str]): The names, in lower case.
        sizes (Collection[str]): What settings have to say. Defaults to what
            those of mmpretrain's ViT say.

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

    Args:
        arch (str | dict): Its name or settings.
        zoo (dict[str, dict]): Settings by name, in lower case.
        sizes (Collection[str]): See :func:`check_arch`.

    Raises:
        ValueError: See :func:`check_arch`.
    """
    check_arch(arch, zoo, sizes)
    return arch if isinstance(arch, dict) else zoo[str(arch).lower()]
