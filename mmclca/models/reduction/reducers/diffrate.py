# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Sequence
from dataclasses import replace
from numbers import Real

import torch
import torch.nn.functional as F
from torch import Tensor

from mmclca.registry import MODELS

from ..attention import Attended
from ..tokens import Tokens
from .base import CountedReducer, check_counts, ranks


@torch.no_grad()
def prune_and_merge(score: Tensor, x: Tensor, num_kept: int, num_left: int):
    """Drop the worst tokens, and merge the worst of the others into the best.

    Args:
        score (Tensor): By which tokens are ordered, (B, M).
        x (Tensor): What is compared by cosine similarity, (B, M, C).
        num_kept (int): Tokens that are not dropped.
        num_left (int): How many of them others are merged into.

    Returns:
        tuple[Tensor, Tensor, Tensor]: The new position of each token, the
        similarity to that one, 1 where it stays, and whether it is dropped;
        all (B, M).
    """
    rank = ranks(score)
    order = rank.argsort(dim=1)
    index = order[:, :num_kept].unsqueeze(-1).expand(-1, -1, x.size(-1))
    y = F.normalize(x.gather(1, index), dim=-1)
    alike = y[:, num_left:] @ y[:, :num_left].transpose(1, 2)
    best, partner = alike.max(dim=-1)
    merged = order[:, num_left:num_kept]
    dropped = rank >= num_kept
    target = rank.where(~dropped, 0).scatter(1, merged, partner)
    similarity = torch.ones_like(x[..., 0]).scatter(1, merged, best.to(x))
    return target, similarity, dropped


@MODELS.register_module()
class DiffRate(CountedReducer):
    """Drops the tokens that matter least, merges others into the best.

    `DiffRate: Differentiable Compression Rate for Efficient Vision
    Transformers`. Tokens are ordered by the attention of CLS; the last ones
    are dropped, those before them merged, as a plain average, into the most
    similar of the first. Sizes, whose logarithm is added to the logits in all
    later layers, grow by those of the merged tokens times the similarity.
    Counts are exact at any keep rate.

    Args:
        keep_rate (float | Sequence[float], optional): See
            :class:`CountedReducer`.
        num_tokens (Sequence[int], optional): See there.
        merge_share (float): Share of the removed tokens that is merged, from
            0 to 1. Defaults to 0.5.
        clamp (bool): Whether negative similarities make no size smaller, as
            released. Defaults to True.
        prune (Sequence[int], optional): In place of both counts, patches
            that are left once some are dropped, one number a stage.
            Defaults to None.
        merge (Sequence[int], optional): With ``prune``, patches that are
            left once others are merged. Defaults to None.
        **backbone: See :class:`CountedReducer`.

    Raises:
        ValueError: As there, if ``merge_share`` is outside 0 to 1, or
            ``prune`` and ``merge`` are not counts or not given alone.
    """

    needs_cls_token = True

    def __init__(
        self,
        keep_rate=None,
        num_tokens=None,
        merge_share: float = 0.5,
        clamp: bool = True,
        prune: Sequence[int] | None = None,
        merge: Sequence[int] | None = None,
        **backbone,
    ):
        super().__init__(keep_rate, num_tokens, **backbone)
        if not (isinstance(merge_share, Real) and 0 <= merge_share <= 1):
            raise ValueError(
                f'merge_share={merge_share!r} must be a number from 0 to 1'
            )
        self.merge_share = merge_share
        self.clamp = clamp
        self.prune, self.merge = prune, merge
        if prune is None and merge is None:
            return
        if not (keep_rate is num_tokens is None):
            raise ValueError(
                f'prune={prune!r} and merge={merge!r} beside keep_rate or '
                'num_tokens: give only these two, or one of those'
            )
        for name, counts in (('prune', prune), ('merge', merge)):
            check_counts(name, counts, self.num_patches, self.num_stages)

    def count(self, stage: int, num_patches: int | None = None) -> int:
        if self.prune is None or stage < 0:
            return super().count(stage, num_patches)
        num_patches = num_patches or self.num_patches
        return min(self.prune[stage], self.merge[stage], num_patches)

    def num_pruned(self, tokens: Tokens, stage: int, surplus: int) -> int:
        """How many of the tokens that a stage removes it drops."""
        if self.prune is None:
            return surplus - int(surplus * self.merge_share)
        pruned = self.count_for(tokens, stage - 1) - self.prune[stage]
        return min(max(0, pruned), surplus)

    def between(
        self, tokens: Tokens, attended: Attended, stage: int
    ) -> Tokens:
        surplus = self.surplus(tokens, stage)
        if not surplus:
            return tokens.unchanged()
        M = tokens.body.size(1)
        num_kept = M - self.num_pruned(tokens, stage, surplus)
        score = attended.cls_attn().mean(dim=1)[:, tokens.num_prefix :]
        target, similarity, dropped = prune_and_merge(
            score, tokens.body, num_kept, M - surplus
        )
        if self.clamp:
            similarity = similarity.clamp(min=0)
        prefix = tokens.num_prefix, 0
        share = F.pad((~dropped).to(similarity), prefix, value=1.0)
        size = tokens.weights * F.pad(similarity, prefix, value=1.0)
        merged = tokens.merge_body(
            target, M - surplus, size=size * share, share=share
        )
        # without clamp a size may fall below 0, which has no logarithm
        return replace(merged, weight=merged.weight.clamp(min=1e-6))

    def key_bias(self, tokens: Tokens) -> Tensor | None:
        return tokens.log_weight
