# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Records of the steps applied to a token sequence: ``Tokens.trace``.

``apply`` applies a step to rows of numbers, one row per token. Shapes as in
``tokens.py``.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from mmclca.utils.torch_versions import is_exporting

from .operators import stable_order


def prepend_prefix(index: Tensor, num_prefix: int) -> Tensor:
    """Return the positions of the prefix and of some tokens after it.

    Args:
        index (Tensor): Tokens after the prefix, counted from 0, (B, K).
        num_prefix (int): Prefix tokens.

    Returns:
        Tensor: Positions in the sequence, (B, num_prefix + K).
    """
    prefix = torch.arange(num_prefix, device=index.device)
    prefix = prefix.expand(index.size(0), -1)
    return torch.cat((prefix, index + num_prefix), dim=1)


@dataclass
class Kept:
    """Reduction that keeps some tokens and may append weighted sums.

    Args:
        index (Tensor): Kept tokens, in their new order, (B, K).
        mix (Tensor, optional): Weights of M new tokens, which follow the kept
            ones, over the old tokens, (B, M, N).
    """

    index: Tensor
    mix: Tensor | None = None

    def apply(self, rows: Tensor) -> Tensor:
        """Map rows (B, N, ...) of old tokens to (B, K + M, ...)."""
        index = self.index.unsqueeze(-1).expand(-1, -1, rows.size(-1))
        kept = rows.gather(1, index)
        if self.mix is None:
            return kept
        return torch.cat((kept, self.mix.to(rows.dtype) @ rows), dim=1)

    def largest_members(self, eligible: Tensor) -> Tensor:
        """Return the eligible old token with most weight in each new one.

        Args:
            eligible (Tensor): Old tokens that may be returned, (B, N), bool.

        Returns:
            Tensor: Places of old tokens, (B, K + M); N: none. A kept token is
            its only member.
        """
        if self.mix is None:
            return self.index
        mix = self.mix.where(eligible.unsqueeze(1), 0.0)
        weight, place = mix.max(dim=-1)
        place = place.where(weight > 0, eligible.size(1))
        return torch.cat((self.index, place), dim=1)


@dataclass
class Merged:
    """Reduction that sums groups of old tokens to new ones.

    Args:
        target (Tensor): New token per old token, (B, N).
        share (Tensor): Weight per old token in its new one, (B, N).
        num_tokens (int): New tokens M.
    """

    target: Tensor
    share: Tensor
    num_tokens: int

    @classmethod
    def average(
        cls, target: Tensor, weight: Tensor, num_tokens: int, eps: float = 0.0
    ) -> 'Merged':
        """Create the record of a weighted average.

        A share is weight / (sum per group + eps).

        Args:
            target (Tensor): New token per old token, (B, N).
            weight (Tensor): Weight per old token, (B, N).
            num_tokens (int): New tokens M.
            eps (float): Added to the sums. Defaults to 0.
        """
        total = sum_into(target, weight.unsqueeze(-1), num_tokens) + eps
        share = weight / total.squeeze(-1).gather(1, target)
        return cls(target, share, num_tokens)

    def within(self, num_before: int, num_after: int) -> 'Merged':
        """Extend the record by unchanged tokens before and after."""
        start, end = num_before, num_before + self.num_tokens
        device = self.target.device
        before = torch.arange(start, device=device)
        after = torch.arange(end, end + num_after, device=device)
        B = self.target.size(0)
        target = torch.cat(
            (before.expand(B, -1), self.target + start, after.expand(B, -1)),
            dim=1,
        )
        share = F.pad(self.share, (num_before, num_after), value=1.0)
        return Merged(target, share, end + num_after)

    def apply(self, rows: Tensor) -> Tensor:
        """Map rows (B, N, ...) of old tokens to (B, M, ...)."""
        rows = rows * self.share.unsqueeze(-1).to(rows.dtype)
        return sum_into(self.target, rows, self.num_tokens)

    def largest_members(self, eligible: Tensor) -> Tensor:
        """Return the eligible old token with most weight in each new one.

        Args:
            eligible (Tensor): Old tokens that may be returned, (B, N), bool.

        Returns:
            Tensor: Places of old tokens, (B, M); the first of equal ones; N:
            none.
        """
        share = self.share.where(eligible, 0.0)
        largest = share.new_zeros(share.size(0), self.num_tokens)
        largest = largest.scatter_reduce(1, self.target, share, 'amax')
        is_largest = share == largest.gather(1, self.target)
        N = share.size(1)
        place = torch.arange(N, device=share.device).expand_as(share)
        place = place.where(is_largest & (share > 0), N)
        first = torch.full_like(largest, N, dtype=torch.long)
        return first.scatter_reduce(1, self.target, place, 'amin')


def ranks(score: Tensor) -> Tensor:
    """Rank scores (B, N) in descending order from 0; ties keep their order."""
    order = stable_order(score, descending=True)
    position = torch.arange(score.size(1), device=score.device).expand_as(
        order
    )
    return torch.zeros_like(order).scatter(1, order, position)


def row_starts(rows: Tensor) -> Tensor:
    """Return the position of each image's first row in flat rows, (B, 1)."""
    B, N, _ = rows.shape
    return torch.arange(0, B * N, N, device=rows.device).unsqueeze(1)


def rows_at(rows: Tensor, position: Tensor) -> Tensor:
    """Return the rows at flat positions (B, K) of (B, N, C), (B, K, C).

    In ONNX Runtime, faster than to gather with an expanded index.
    """
    selected = rows.flatten(0, 1).index_select(0, position.flatten())
    B, K = position.shape
    return selected.view(B, K, -1)


def sum_into(target: Tensor, rows: Tensor, num_tokens: int) -> Tensor:
    """Sum rows (B, N, C) with the same ``target`` (B, N) to (B, M, C)."""
    sums = rows.new_zeros(rows.size(0), num_tokens, rows.size(2))
    if is_exporting():  # faster in ONNX Runtime
        position = (row_starts(sums) + target).flatten()
        flat = sums.flatten(0, 1)
        flat = flat.index_put((position,), rows.flatten(0, 1), accumulate=True)
        return flat.view_as(sums)
    return sums.scatter_add(1, target.unsqueeze(-1).expand_as(rows), rows)


@dataclass
class Masked:
    """Reduction in training: tokens stay, but some are not attended to.

    Args:
        decision (Tensor): 1 for a kept token, 0 for a dropped one, (B, N).
    """

    decision: Tensor

    def apply(self, rows: Tensor) -> Tensor:
        """Set the rows of dropped tokens to zero, (B, N, ...)."""
        return rows * self.decision.unsqueeze(-1).to(rows.dtype)


@dataclass
class Unchanged:
    """Stage of a reduction without any token to reduce."""

    def apply(self, rows: Tensor) -> Tensor:
        """Return the rows unchanged."""
        return rows


@dataclass
class Appended:
    """Tokens appended to the sequence, which belong to no patch.

    Args:
        num_tokens (int): Appended tokens M.
        cached (bool): Whether they come from the cache, CLR tokens included;
            False for registers. Defaults to True.
    """

    num_tokens: int
    cached: bool = True

    def apply(self, rows: Tensor) -> Tensor:
        """Append rows of zeros: (B, N, ...) to (B, N + M, ...)."""
        new = rows.new_zeros(rows.size(0), self.num_tokens, rows.size(2))
        return torch.cat((rows, new), dim=1)


def patch_weights(
    trace: list, batch_size: int, num_patches: int, num_prefix: int = 1
) -> Tensor:
    """Compute the weight of each patch in each token.

    Returns:
        Tensor: Weights (B, N, P), float32. Rows of the prefix, registers and
        cached tokens are zero.
    """
    fields = (value for record in trace for value in vars(record).values())
    device = next((f.device for f in fields if isinstance(f, Tensor)), None)
    weights = torch.eye(num_patches + num_prefix, device=device)
    weights = weights[:, num_prefix:].expand(batch_size, -1, -1)
    for record in trace:
        weights = record.apply(weights)
    return weights
