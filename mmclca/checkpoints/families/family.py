# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

# the name of positions from a foreign file, in which CLS may have none
POS_EMBED = 'backbone.foreign_pos_embed'


@dataclass(frozen=True)
class Family:
    """Files whose tensors have the same names, and what these become.

    All patterns are matched at the beginning of a name, after the prefix of
    the encoder, which may be any names of modules (``module.model.``).

    Args:
        mark (str): Pattern of a name by which a file is recognized.
        renames (tuple[tuple[str, str]]): Patterns, and the names in a
            classifier of this package (``backbone.``, ``head.``). The first
            pattern that matches a name applies. Other names go to the
            backbone, which refuses what it has no place for.
        left_out (str): Pattern of what a file has and no model needs.
            Defaults to one that no name matches.
        values (tuple[tuple[str, str, Callable]]): Pattern of whole names in
            the file, name of what is made of each such tensor (the same or
            one more), and what makes it. Names change after that.
        stacked (tuple[tuple[str, str]]): Pattern of whole names whose group
            ``part`` is a number, or query, key or value; and the name of the
            tensor that these become, along the first axis. Names change
            after that.
        spelling (tuple[tuple[str, str]]): Texts in names, and those that
            replace them before all else, in this order: the names of another
            family that the other tables have.
    """

    mark: str
    renames: tuple[tuple[str, str], ...]
    left_out: str = r'(?!)'
    values: tuple[tuple[str, str, Callable[[Tensor], Tensor]], ...] = ()
    stacked: tuple[tuple[str, str], ...] = ()
    spelling: tuple[tuple[str, str], ...] = ()


def spelling(pairs: str) -> tuple[tuple[str, str], ...]:
    """Read pairs of texts, ``old>new`` with spaces between them."""
    return tuple(tuple(pair.split('>')) for pair in pairs.split())
