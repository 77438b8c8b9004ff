# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The token sequence of a vision transformer and what travels with it.

Shapes in this package: B batch, N tokens, C channels, H heads, D head
channels, K kept, M made, P patches, G groups (layers that CLA reads).
"""

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor


@dataclass
class Kept:
    """Reduction that keeps some tokens and may fuse others into new ones.

    Args:
        index (Tensor): The tokens kept, in their new order, (B, K).
        mix (Tensor, optional): Weights with which each of M made tokens,
            which follow the kept ones, sums the old tokens, (B, M, N).
    """

    index: Tensor
    mix: Tensor | None = None

    def apply(self, rows: Tensor) -> Tensor:
        """Carry rows of tokens, (B, N, ...), over to (B, K + M, ...)."""
        index = self.index.unsqueeze(-1).expand(-1, -1, rows.size(-1))
        kept = rows.gather(1, index)
        if self.mix is None:
            return kept
        return torch.cat((kept, self.mix.to(rows.dtype) @ rows), dim=1)


@dataclass
class Appended:
    """Tokens that came from the cache: they stand for no patch.

    Args:
        num_tokens (int): How many tokens were put at the end.
    """

    num_tokens: int

    def apply(self, rows: Tensor) -> Tensor:
        """Carry rows of tokens, (B, N, ...), over to (B, N + M, ...)."""
        new = rows.new_zeros(rows.size(0), self.num_tokens, rows.size(2))
        return torch.cat((rows, new), dim=1)


@dataclass
class Tokens:
    """The sequence [CLS | patches | cached]; every method returns a new one.

    Args:
        x (Tensor): The tokens, (B, N, C).
        weight (Tensor, optional): How much a token counts as a key, (B, N).
            None: all alike.
        num_cached (int): Tokens at the end that came from the cache, CLR
            tokens included.
        num_pooled (int): Tokens that the average of the cache covers: the
            length right after the last reduction.
        trace (list): What was done to the sequence so far, one small record
            (:class:`Kept`, :class:`Appended`) a step. ``record.apply``
            carries any rows of tokens through that step.
    """

    x: Tensor
    weight: Tensor | None = None
    num_cached: int = 0
    num_pooled: int = 0
    trace: list = field(default_factory=list)

    def with_x(self, x: Tensor) -> 'Tokens':
        """The same sequence with other features, (B, N, C)."""
        return replace(self, x=x)

    def reduce(self, record) -> 'Tokens':
        """Apply a reduction, a record with an ``apply``, to everything."""
        weight = self.weight
        if weight is not None:
            weight = record.apply(weight.unsqueeze(-1)).squeeze(-1)
        return replace(
            self,
            x=record.apply(self.x),
            weight=weight,
            num_cached=0,
            trace=[*self.trace, record],
        )

    def gather(self, index: Tensor) -> 'Tokens':
        """Keep the tokens at ``index``, (B, K), in that order."""
        return self.reduce(Kept(index))

    def append(self, x: Tensor, weight: float = 1.0) -> 'Tokens':
        """Put M tokens, (B, M, C), at the end as cached tokens."""
        num_new = x.size(1)
        weights = self.weight
        if weights is not None:
            new = weights.new_full((weights.size(0), num_new), weight)
            weights = torch.cat((weights, new), dim=1)
        return replace(
            self,
            x=torch.cat((self.x, x), dim=1),
            weight=weights,
            num_cached=self.num_cached + num_new,
            trace=[*self.trace, Appended(num_new)],
        )


def patch_weights(
    trace: list, batch_size: int, num_patches: int, num_extra_tokens: int = 1
) -> Tensor:
    """Which input patches each token stands for, and with what weight.

    Args:
        trace (list): ``Tokens.trace``, or its first records.
        batch_size (int): Images in the batch.
        num_patches (int): Patches of an image before any reduction.
        num_extra_tokens (int): Tokens ahead of the patches; 0 without a CLS
            token. Defaults to 1.

    Returns:
        Tensor: Weights (B, N, P), float32. CLS and cached tokens stand for
        no patch: their rows are zero.
    """
    fields = (value for record in trace for value in vars(record).values())
    device = next((f.device for f in fields if isinstance(f, Tensor)), None)
    weights = torch.eye(num_patches + num_extra_tokens, device=device)
    weights = weights[:, num_extra_tokens:].expand(batch_size, -1, -1)
    for record in trace:
        weights = record.apply(weights)
    return weights
