# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Refuse settings in one line: what came, and what is allowed."""

from collections.abc import Collection, Sequence

from .known_names import not_one_of


def integer(least: int = 1, most: int | None = None, **settings: int) -> None:
    """Refuse settings that are no integers, or out of a range."""
    for name, value in settings.items():
        inside = type(value) is int and least <= value
        if not inside or (most is not None and value > most):
            top = 'or more' if most is None else f'to {most}'
            raise ValueError(
                f'{name}={value!r} must be an integer, {least} {top}'
            )


def one_of(known: Collection, **settings) -> None:
    """Refuse settings that are none of the names known."""
    for name, value in settings.items():
        if value not in known:
            raise ValueError(f'{name}: {not_one_of(value, known)}')


def ascending(
    name: str, given: Sequence[int] | int, count: int
) -> tuple[int, ...]:
    """Refuse what is not ascending integers below ``count``; a tuple."""
    listed = isinstance(given, Sequence)
    layers = tuple(given) if listed else (given,)
    inside = all(type(i) is int and 0 <= i < count for i in layers)
    if not inside or list(layers) != sorted(set(layers)):
        raise ValueError(
            f'{name}={given!r} must be ascending, different layers '
            f'(integers) within 0 to {count - 1}'
        )
    return layers
