# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Tokens dropped and merged as in DiffRate, and numbers that are learned."""

from collections.abc import Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .tokens import Tokens
from .trace import Merged, ranks, sum_into

TINY = 1e-6  # above 0 in half precision, too


def straight_through(hard: Tensor, soft: Tensor) -> Tensor:
    """Give ``hard`` the gradient of ``soft``."""
    return hard + (soft - soft.detach())


class Rate(nn.Module):
    """A learned number of patches that a step keeps.

    Args:
        num_patches (int): Patches P.
        granularity (int): The candidates are P, P - granularity, ...
    """

    def __init__(self, num_patches: int, granularity: int = 1):
        super().__init__()
        candidates = torch.arange(num_patches, 0, -granularity)
        self.register_buffer('candidates', candidates, persistent=False)
        self.logits = nn.Parameter(torch.zeros(len(candidates)))

    def forward(self) -> Tensor:
        """Return the count, a whole number that has a gradient."""
        expected = (self.logits.softmax(0) * self.candidates).sum()
        return straight_through(expected.detach().ceil(), expected)

    def mask(self) -> Tensor:
        """Mask the ranks that are not kept, (P,), with a gradient."""
        rank = torch.arange(int(self.candidates[0]), device=self.logits.device)
        kept = self.candidates > rank.unsqueeze(1)  # (P, candidates)
        chance = (kept * self.logits.softmax(0)).sum(dim=1)
        return straight_through((rank < self()).to(chance), chance)


class Rates(nn.Module):
    """The two steps of a stage: what pruning leaves, and merging."""

    def __init__(self, num_patches: int, granularity: int = 1):
        super().__init__()
        self.prune = Rate(num_patches, granularity)
        self.merge = Rate(num_patches, granularity)


def learned_counts(stages: Sequence[Rates]) -> tuple[int, int]:
    """Count the tokens that pruning and merging keep after these stages.

    As with given counts, they do not increase from stage to stage.
    """
    if torch.compiler.is_exporting():
        raise ValueError(
            'DiffRate with target= cannot be exported, which needs fixed '
            'counts; set prune and merge to the values of steps(stage)'
        )
    prune = min(int(rates.prune()) for rates in stages)
    return prune, min(int(rates.merge()) for rates in stages)


def gmacs(reducer) -> Tensor:
    """Count 1e9 multiply-accumulates of the layers, with a gradient.

    That of the tokens left goes to both steps of a stage alike, whichever
    keeps fewer, and not to the stages before. FFNs have 4 C channels.

    Args:
        reducer (TokenReducer): Its ``stages`` are :class:`Rates`.
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
    """Drop the worst tokens, and merge the worst of the others into the best.

    Args:
        tokens (Tokens): Those after the prefix are reduced.
        score (Tensor): By which these are ordered, (B, M).
        num_kept (int): How many are not dropped.
        num_left (int): How many of them others are merged into.
        clamp (bool): Whether negative similarities count as 0 in sizes.
    """
    with torch.no_grad():
        rank, x = ranks(score), tokens.body
        order = rank.argsort(dim=1)
        index = order[:, :num_kept].unsqueeze(-1).expand(-1, -1, x.size(-1))
        y = F.normalize(x.gather(1, index), dim=-1, eps=TINY)
        alike = y[:, num_left:] @ y[:, :num_left].transpose(1, 2)
        best, partner = alike.max(dim=-1)
        best = (best.clamp(min=0) if clamp else best).to(x)
        merged = order[:, num_left:num_kept]
        kept = rank < num_kept
        target = rank.where(kept, 0).scatter(1, merged, partner)
        grown = kept.to(x).scatter(1, merged, best)
        prefix = tokens.num_prefix, 0
        share = F.pad(kept.to(x), prefix, value=1.0)
        size = tokens.weights * F.pad(grown, prefix, value=1.0)
    reduced = tokens.merge_body(target, num_left, size=size, share=share)
    # without clamp a size may fall below 0, which has no logarithm
    return replace(reduced, weight=reduced.weight.clamp(min=TINY))


def decision(tokens: Tokens) -> Tensor:
    """Tell tokens that are left, 1, from masked ones, 0, (B, N).

    ``weight`` is the size of what is left, 0 of what is not. The answer has
    gradients.
    """
    return tokens.weights / sizes(tokens)


def sizes(tokens: Tokens) -> Tensor:
    """Return the sizes of the tokens, (B, N), 1 where they are masked."""
    weight = tokens.weights.detach()
    return weight.where(weight > 0, 1.0)


def mask_and_merge(
    tokens: Tokens, score: Tensor, rates: Rates, last: int, clamp: bool
) -> Tokens:
    """Drop and merge tokens as in training, where all stay in their places.

    Args:
        tokens (Tokens): Of which some may be masked.
        score (Tensor): By which those after the prefix are ordered, (B, M).
        rates (Rates): Those of the stage.
        last (int): Patches that are left.
        clamp (bool): Whether negative similarities count as 0 in sizes.
    """
    start, P = tokens.num_prefix, len(rates.prune.mask())
    kept, size = (f(tokens)[:, start:] for f in (decision, sizes))
    rank = ranks(score.masked_fill(kept <= 0, -1.0))
    extra = score.size(1) - P  # cached ones come on top of the counts
    left, x = last, tokens.body
    if int(rates.prune()) < left:
        left = int(rates.prune())
        kept = kept * _mask(rates.prune, rank - extra, last)
    if int(rates.merge()) < left:
        into = rank < int(rates.merge()) + extra
        gone = ~into & (rank < left + extra)
        x, size = _merge(x, size, into, gone, clamp)
        kept = kept * _mask(rates.merge, rank - extra, left)
    kept, size = (F.pad(y, (start, 0), value=1.0) for y in (kept, size))
    masked = tokens.with_body(x).mask(kept)
    return replace(masked, weight=kept * size)


def _mask(rate: Rate, rank: Tensor, left: int) -> Tensor:
    """Mask what a rate drops of the tokens that are left, (B, M).

    The gradient of tokens that were masked before stays as it was.
    """
    return rate.mask()[rank.clamp(min=0)].where(rank < left, 1.0)


def _merge(x, size, into, gone, clamp: bool) -> tuple[Tensor, Tensor]:
    """Average some tokens into others; all stay where they are.

    Args:
        x (Tensor): (B, M, C).
        size (Tensor): (B, M).
        into (Tensor): Tokens that others may be merged into, (B, M).
        gone (Tensor): Those that are merged, (B, M).
        clamp (bool): See :func:`mask_and_merge`.
    """
    y = F.normalize(x.detach(), dim=-1, eps=TINY)
    alike = y @ y.transpose(1, 2)
    best, partner = alike.masked_fill(~into[:, None], -torch.inf).max(dim=-1)
    own = torch.arange(x.size(1), device=x.device)
    target = torch.where(gone, partner, own)
    merged = Merged.average(target, torch.ones_like(size), x.size(1))
    x = torch.where(gone.unsqueeze(-1), x, merged.apply(x))
    size = size.clamp(min=1)
    more = size * (best.clamp(min=0) if clamp else best).where(gone, 0.0)
    more = sum_into(target, more.unsqueeze(-1), x.size(1)).squeeze(-1)
    return x, (size + more.where(~gone, 0.0)).clamp(min=TINY)
