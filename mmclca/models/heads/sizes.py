# Copyright (c) mmclca contributors. Licensed under Apache-2.0.


def check_sizes(**sizes: int) -> None:
    """Refuse sizes of a head that are none.

    Raises:
        ValueError: If one is not a positive integer; names it.
    """
    for name, size in sizes.items():
        if type(size) is not int or size < 1:
            raise ValueError(f'{name}={size!r} must be a positive integer')
