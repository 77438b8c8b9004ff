# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Pruning and merging of DiffRate, with fixed or learned counts."""

import torch
import torch.nn.functional as F
from torch import Tensor

from .learned_counts import LearnedCount, LearnedCounts
from .operators import stable_order, unit_length
from .tokens import Tokens
from .trace import Merged, ranks, row_starts, rows_at, sum_into

TINY = 1e-6  # nonzero in half precision


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
        y = unit_length(y, eps=TINY)
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
    weight = reduced.weight.clamp(min=TINY)
    return reduced.replace(weight=weight, all_count=True)


def get_decision(tokens: Tokens) -> Tensor:
    """Return 1 for kept and 0 for masked tokens, with gradients, (B, N).

    ``weight`` is the size of a kept token, and 0 for a masked one.
    """
    return tokens.weights / get_sizes(tokens)


def get_sizes(tokens: Tokens) -> Tensor:
    """Return token sizes, (B, N), 1 for masked ones."""
    weight = tokens.weights.detach()
    return weight.where(weight > 0, 1.0)


def mask_and_merge(
    tokens: Tokens,
    score: Tensor,
    counts: LearnedCounts,
    last: int,
    clamp: bool,
) -> Tokens:
    """Mask and merge tokens in training; the sequence keeps its length.

    ``score`` (B, M) ranks the tokens after the prefix, of which some may be
    masked. ``last`` patches are left by the previous stage. With ``clamp``,
    negative similarities count as 0 in sizes.
    """
    start, P = tokens.num_prefix, len(counts.prune.mask())
    kept, size = (f(tokens)[:, start:] for f in (get_decision, get_sizes))
    rank = ranks(score.masked_fill(kept <= 0, -1.0))
    extra = score.size(1) - P  # counts exclude cached tokens
    left, x = last, tokens.after_prefix
    if int(counts.prune()) < left:
        left = int(counts.prune())
        kept = kept * _mask(counts.prune, rank - extra, last)
    if int(counts.merge()) < left:
        into = rank < int(counts.merge()) + extra
        gone = ~into & (rank < left + extra)
        x, size = _merge(x, size, into, gone, clamp)
        kept = kept * _mask(counts.merge, rank - extra, left)
    kept, size = (F.pad(y, (start, 0), value=1.0) for y in (kept, size))
    masked = tokens.with_after_prefix(x).mask(kept)
    return masked.replace(weight=kept * size)


def _mask(count: LearnedCount, rank: Tensor, left: int) -> Tensor:
    """Mask the tokens that a learned count drops, (B, M).

    Tokens that were masked before get no new gradient.
    """
    return count.mask()[rank.clamp(min=0)].where(rank < left, 1.0)


def _merge(x, size, into, gone, clamp: bool) -> tuple[Tensor, Tensor]:
    """Average tokens ``gone`` (B, M) into the most similar ones of ``into``.

    Returns tokens (B, M, C), all in their places, and sizes (B, M).
    """
    y = unit_length(x.detach(), eps=TINY)
    similarity = y @ y.transpose(1, 2)
    best, partner = similarity.masked_fill(~into[:, None], -torch.inf).max(
        dim=-1
    )
    itself = torch.arange(x.size(1), device=x.device)
    target = torch.where(gone, partner, itself)
    merged = Merged.average(target, torch.ones_like(size), x.size(1))
    x = torch.where(gone.unsqueeze(-1), x, merged.apply(x))
    size = size.clamp(min=1)
    gain = size * (best.clamp(min=0) if clamp else best).where(gone, 0.0)
    gain = sum_into(target, gain.unsqueeze(-1), x.size(1)).squeeze(-1)
    return x, (size + gain.where(~gone, 0.0)).clamp(min=TINY)
