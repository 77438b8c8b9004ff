# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from dataclasses import dataclass, replace

import torch.nn.functional as F
from torch import Tensor

from mmclca.models.reduction.tokens import Tokens
from mmclca.models.reduction.trace import Appended


@dataclass
class Cached:
    """The cached tokens of a stage.

    Args:
        num_left (int): Tokens that the reduction leaves which came from the
            cache, CLR tokens included, and stand for no patch.
        num_put_back (int): Tokens that the cache puts back right after it.
    """

    num_left: int
    num_put_back: int

    def note(self) -> str:
        """What to write of it below the number of tokens."""
        return f'\n{self.num_left} cached, then {self.num_put_back} put back'


def cached_by_stage(tokens: Tokens) -> list[list[Cached]]:
    """The cached tokens of each reduction, for each image.

    Args:
        tokens (Tokens): The final ones of a forward pass.

    Returns:
        list[list[Cached]]: A list a stage with an entry an image; empty
        where no cache takes part.
    """
    if not tokens.with_cache:
        return []
    stages = []
    for step, record in enumerate(tokens.trace, start=1):
        if isinstance(record, Appended):
            continue
        left = _left(replace(tokens, trace=tokens.trace[:step]))
        after = tokens.trace[step : step + 1]
        # cached tokens that come before anything else is done
        put_back = sum(r.num_tokens for r in after if isinstance(r, Appended))
        stages.append([Cached(number, put_back) for number in left])
    return stages


def _left(tokens: Tokens) -> list[int]:
    patches = tokens.patch_weights.sum(dim=-1)
    num_tokens = tokens.num_prefix + tokens.num_patches
    start = patches.new_zeros(len(patches), num_tokens, 1)
    cached = from_cache(tokens.trace, start)
    return ((cached > 0) & (patches == 0)).sum(dim=1).tolist()


def from_cache(trace: list, rows: Tensor) -> Tensor:
    """How much of each token came from the cache.

    Args:
        trace (list): ``Tokens.trace``, or its first records.
        rows (Tensor): Zeros for the prefix and the patches,
            (B, num_prefix + P, 1).

    Returns:
        Tensor: (B, N).
    """
    for record in trace:
        before = rows.size(1)
        rows = record.apply(rows)
        if isinstance(record, Appended) and record.cached:
            new = (0, 0, 0, record.num_tokens)
            rows = F.pad(rows[:, :before], new, value=1.0)
    return rows.squeeze(-1)
