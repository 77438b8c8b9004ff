# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from mmclca.registry import MODELS
from mmclca.utils.messages import check_choice

from ..attention import Attended
from ..tokens import Tokens
from ..trace import Merged, ranks, sum_into
from .base import VIT_BASE, BackboneShape
from .counted import HalvingReducer


@torch.no_grad()
def match(
    metric: Tensor, num_merged: int, num_prefix: int = 1
) -> tuple[Tensor, int]:
    """Choose the tokens to merge by bipartite soft matching.

    Each token at an even position selects the most similar one, by ``metric``
    (B, N, D), at an odd position; the most similar pairs merge, at most (N -
    num_prefix) // 2. The prefix is never merged. Returns the new position per
    token, (B, N), and the number of new tokens: the prefix, the remaining even
    tokens, then the odd ones.
    """
    y = F.normalize(metric[:, num_prefix:], dim=-1)
    even = num_prefix % 2  # first even position
    similarity = y[:, even::2] @ y[:, 1 - even :: 2].transpose(1, 2)
    # both (B, E), with E tokens at even positions
    best, partner = similarity.max(dim=-1)
    merges = ranks(best) < num_merged
    num_left = num_prefix + best.size(1) - num_merged
    rank = num_prefix + (~merges).long().cumsum(dim=1) - 1
    target = torch.arange(metric.size(1), device=metric.device)
    target = target.repeat(metric.size(0), 1)
    body = target[:, num_prefix:]  # a view
    body[:, even::2] = torch.where(merges, num_left + partner, rank)
    odd = torch.arange(similarity.size(2), device=metric.device)
    body[:, 1 - even :: 2] = num_left + odd
    return target, metric.size(1) - num_merged


def unmerged(target: Tensor, num_prefix: int) -> Tensor:
    """Return the tokens that :func:`match` does not merge, (B, N)."""
    odd = slice(num_prefix + 1 - num_prefix % 2, None, 2)
    left = target < target[:, odd][:, :1]  # odd tokens come last
    left[:, odd] = True
    return left


def norm_of_largest(x: Tensor, target: Tensor, left: Tensor, num_tokens: int):
    """Divide the largest norm in a group by that of its target, (B, M, 1).

    It scales the averages in `Token Fusion` (MLERP), as in the code.
    ``target`` (B, N) is the new token of each token ``x`` (B, N, C), and
    ``left`` (B, N) is true for tokens that stay in place.
    """
    norm = x.norm(dim=-1)
    largest = norm.new_zeros(norm.size(0), num_tokens)
    largest = largest.scatter_reduce(1, target, norm, 'amax').unsqueeze(-1)
    target_norm = sum_into(target, (norm * left).unsqueeze(-1), num_tokens)
    nonzero = (
        target_norm > 0
    )  # avoid a division by zero, which has no gradient
    return largest.where(nonzero, 1.0) / target_norm.where(nonzero, 1.0)


@MODELS.register_module()
class ToMe(HalvingReducer):
    """Merge the most similar pairs of tokens.

    `Token Merging: Your ViT But Faster`, section 3, at the stages only. Keys
    of the layer, averaged over heads, are matched between even and odd
    positions. Merged tokens are averages weighted by their patch counts
    (sizes); all later layers add the log size to the logits. A stage merges as
    many tokens as it has patches to remove, but at most half of those after
    CLS, so keep rates below 0.5 leave more tokens than requested. At keep rate
    1, tokens are unchanged.

    ``early='prune', merge='mlerp'`` is `Token Fusion: Bridging the Gap between
    Token Pruning and Token Merging` (ToFu).

    Args:
        keep_rate (float | Sequence[float], optional): See
            :class:`CountedReducer`.
        num_tokens (Sequence[int], optional): See :class:`CountedReducer`.
        early (str): Handling of the even token of a pair up to the middle
            layer: 'merge', or 'prune' to drop it. Defaults to 'merge'.
        merge (str): 'average', or 'mlerp', a plain average scaled by the
            largest norm over that of the target token, without sizes. Defaults
            to 'average'.
        backbone (BackboneShape): See :class:`CountedReducer`.
        init_cfg (dict, optional): See :class:`CountedReducer`.

    Raises:
        Error: As :class:`CountedReducer`, or if ``early`` or ``merge`` is
            unknown.
    """

    summary = 'merge pairs of similar patches'

    def __init__(
        self,
        keep_rate: float | Sequence[float] | None = None,
        num_tokens: Sequence[int] | None = None,
        *,
        early: Literal['merge', 'prune'] = 'merge',
        merge: Literal['average', 'mlerp'] = 'average',
        backbone: BackboneShape = VIT_BASE,
        init_cfg: dict | None = None,
    ):
        super().__init__(
            keep_rate, num_tokens, backbone=backbone, init_cfg=init_cfg
        )
        check_choice(('merge', 'prune'), early=early)
        check_choice(('average', 'mlerp'), merge=merge)
        self.early = early
        self.merge = merge

    def after_attention(
        self, tokens: Tokens, attended: Attended, stage: int
    ) -> Tokens:
        num_merged = self.count_merged(tokens, stage)
        if num_merged <= 0:
            return tokens.unchanged()
        target, num_tokens = match(
            attended.k.mean(dim=1), num_merged, tokens.num_prefix
        )
        prunes = self.early == 'prune' and self.depths[stage] <= 0.5
        if self.merge == 'average' and not prunes:
            return tokens.merge(target, num_tokens)
        left = unmerged(target, tokens.num_prefix)
        share = (left | (not prunes)).to(tokens.features)
        merged = tokens.reduce(Merged.average(target, share, num_tokens))
        if prunes:
            return merged
        scale = norm_of_largest(tokens.features, target, left, num_tokens)
        return merged.with_features(merged.features * scale)
