# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Pruning and merging of DiffRate, with fixed or learned counts."""

from collections.abc import Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mmclca.errors import Error

from .operators import stable_order
from .tokens import Tokens
from .trace import Merged, ranks, row_starts, rows_at, sum_into

TINY = 1e-6  # nonzero in half precision


def straight_through(hard: Tensor, soft: Tensor) -> Tensor:
    """Return ``hard`` with the gradient of ``soft``."""
    return hard + (soft - soft.detach())


class Rate(nn.Module):
    """Learned number of patches to keep: P, P - granularity, and so on."""

    def __init__(self, num_patches: int, granularity: int = 1):
        super().__init__()
        candidates = torch.arange(num_patches, 0, -granularity)
        self.register_buffer('candidates', candidates, persistent=False)
        self.logits = nn.Parameter(torch.zeros(len(candidates)))

    def forward(self) -> Tensor:
        """Return the count, an integer-valued tensor with a gradient."""
        expected = (self.logits.softmax(0) * self.candidates).sum()
        return straight_through(expected.detach().ceil(), expected)

    def mask(self) -> Tensor:
        """Return 1 for kept ranks, else 0, with a gradient, (P,)."""
        rank = torch.arange(int(self.candidates[0]), device=self.logits.device)
        kept = self.candidates > rank.unsqueeze(1)  # (P, candidates)
        chance = (kept * self.logits.softmax(0)).sum(dim=1)
        return straight_through((rank < self()).to(chance), chance)


class Rates(nn.Module):
    """Learned stage counts, after pruning and after merging."""

    def __init__(self, num_patches: int, granularity: int = 1):
        super().__init__()
        self.prune = Rate(num_patches, granularity)
        self.merge = Rate(num_patches, granularity)


def learned_counts(stages: Sequence[Rates]) -> tuple[int, int]:
    """Return the token counts after pruning and after merging.

    Like given counts, they do not increase from stage to stage.
    """
    if torch.compiler.is_exporting():
        raise Error(
            'DiffRate with target= cannot be exported, which needs fixed '
            'counts; set prune and merge to the values of steps(stage)'
        )
    prune = min(int(rates.prune()) for rates in stages)
    return prune, min(int(rates.merge()) for rates in stages)


def gmacs(reducer) -> Tensor:
    """Compute the GMACs of the layers, with a gradient.

    The gradient reaches both counts of a stage equally, whichever is smaller,
    but not earlier stages. FFNs have 4 C hidden channels.
    """
    stage_of = dict(zip(reducer.reduce_at, reducer.stages, strict=True))
    C, left = reducer.embed_dims, 1 + reducer.num_patches
    total = 0
    for layer in range(reducer.num_layers):
        entering = left
        if layer in stage_of:
            steps = stage_of[layer].prune() + 1, stage_of[layer].merge() + 1
            left = torch.stack(steps).detach().amin().clamp(max=int(entering))
            left = straight_through(left, sum(steps))
        attention = 4 * entering * C**2 + 2 * entering**2 * C
        total = total + attention + 8 * left * C**2
    return total / 1e9


def prune_and_merge(
    tokens: Tokens, score: Tensor, num_kept: int, num_left: int, clamp: bool
) -> Tokens:
    """Drop the lowest-scoring tokens, then merge the next ones into the best.

    ``score`` (B, M) ranks the tokens after the prefix. ``num_kept`` tokens
    remain after pruning, ``num_left`` after merging. With ``clamp``, negative
    similarities count as 0 in sizes.
    """
    with torch.no_grad():
        rank, x = ranks(score), tokens.after_prefix
        order = stable_order(score, descending=True)
        y = rows_at(x, row_starts(x) + order[:, :num_kept])
        y = F.normalize(y, dim=-1, eps=TINY)
        similarity = y[:, num_left:] @ y[:, :num_left].transpose(1, 2)
        best, partner = similarity.max(dim=-1)
        best = (best.clamp(min=0) if clamp else best).to(x)
        merged = order[:, num_left:num_kept]
        kept = rank < num_kept
        target = rank.where(kept, 0).scatter(1, merged, partner)
        grown = kept.to(x).scatter(1, merged, best)
        prefix = tokens.num_prefix, 0
        share = F.pad(kept.to(x), prefix, value=1.0)
        size = tokens.weights * F.pad(grown, prefix, value=1.0)
    reduced = tokens.merge_after_prefix(
        target, num_left, size=size, share=share
    )
    # without clamp, a size may be negative and has no logarithm
    return replace(reduced, weight=reduced.weight.clamp(min=TINY))


def decision(tokens: Tokens) -> Tensor:
    """Return 1 for kept and 0 for masked tokens, with gradients, (B, N).

    ``weight`` is the size of a kept token, and 0 for a masked one.
    """
    return tokens.weights / sizes(tokens)


def sizes(tokens: Tokens) -> Tensor:
    """Return token sizes, (B, N), 1 for masked ones."""
    weight = tokens.weights.detach()
    return weight.where(weight > 0, 1.0)


def mask_and_merge(
    tokens: Tokens, score: Tensor, rates: Rates, last: int, clamp: bool
) -> Tokens:
    """Mask and merge tokens in training; the sequence keeps its length.

    ``score`` (B, M) ranks the tokens after the prefix, of which some may be
    masked. ``last`` patches are left by the previous stage. With ``clamp``,
    negative similarities count as 0 in sizes.
    """
    start, P = tokens.num_prefix, len(rates.prune.mask())
    kept, size = (f(tokens)[:, start:] for f in (decision, sizes))
    rank = ranks(score.masked_fill(kept <= 0, -1.0))
    extra = score.size(1) - P  # counts exclude cached tokens
    left, x = last, tokens.after_prefix
    if int(rates.prune()) < left:
        left = int(rates.prune())
        kept = kept * _mask(rates.prune, rank - extra, last)
    if int(rates.merge()) < left:
        into = rank < int(rates.merge()) + extra
        gone = ~into & (rank < left + extra)
        x, size = _merge(x, size, into, gone, clamp)
        kept = kept * _mask(rates.merge, rank - extra, left)
    kept, size = (F.pad(y, (start, 0), value=1.0) for y in (kept, size))
    masked = tokens.with_after_prefix(x).mask(kept)
    return replace(masked, weight=kept * size)


def _mask(rate: Rate, rank: Tensor, left: int) -> Tensor:
    """Mask the tokens that a rate drops, (B, M).

    Tokens that were masked before get no new gradient.
    """
    return rate.mask()[rank.clamp(min=0)].where(rank < left, 1.0)


def _merge(x, size, into, gone, clamp: bool) -> tuple[Tensor, Tensor]:
    """Average tokens ``gone`` (B, M) into the most similar ones of ``into``.

    Returns tokens (B, M, C), all in their places, and sizes (B, M).
    """
    y = F.normalize(x.detach(), dim=-1, eps=TINY)
    similarity = y @ y.transpose(1, 2)
    best, partner = similarity.masked_fill(~into[:, None], -torch.inf).max(
        dim=-1
    )
    own = torch.arange(x.size(1), device=x.device)
    target = torch.where(gone, partner, own)
    merged = Merged.average(target, torch.ones_like(size), x.size(1))
    x = torch.where(gone.unsqueeze(-1), x, merged.apply(x))
    size = size.clamp(min=1)
    more = size * (best.clamp(min=0) if clamp else best).where(gone, 0.0)
    more = sum_into(target, more.unsqueeze(-1), x.size(1)).squeeze(-1)
    return x, (size + more.where(~gone, 0.0)).clamp(min=TINY)
