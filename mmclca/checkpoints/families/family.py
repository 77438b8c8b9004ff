# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

# the name of positions from a foreign file, in which CLS may have none
POS_EMBED = 'backbone.foreign_pos_embed'


@dataclass(frozen=True)
class Family:
    """Files whose tensors have the same names, and what these become.

    All patterns are matched at the beginning of a name, after what precedes
    those of the encoder.

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
        stacked (tuple[tuple[str, str]]): Pattern of whole names that differ
            by a number, its only group, and the name of the one tensor that
            these become, along the first axis. Names change after that.
        encoders (tuple[str]): What may precede the names of the encoder: of
            MoCo v3, DINO, CLIP, others. What lies beside it is left alone.
    """

    mark: str
    renames: tuple[tuple[str, str], ...]
    left_out: str = r'(?!)'
    values: tuple[tuple[str, str, Callable[[Tensor], Tensor]], ...] = ()
    stacked: tuple[tuple[str, str], ...] = ()
    encoders: tuple[str, ...] = ('base_encoder.', 'backbone.', 'visual.', '')
