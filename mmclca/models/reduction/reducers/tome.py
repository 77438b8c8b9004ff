# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch
import torch.nn.functional as F
from torch import Tensor

from mmclca.registry import MODELS
from mmclca.utils.messages import one_of

from ..attention import Attended
from ..tokens import Tokens
from ..trace import Merged, sum_into
from .base import HalvingReducer


@torch.no_grad()
def match(
    metric: Tensor, num_merged: int, num_prefix: int = 1
) -> tuple[Tensor, int]:
    """Choose which tokens merge, by bipartite soft matching.

    Tokens at even positions each choose the most similar one at an odd
    position; the most similar pairs merge. Those of the prefix never do.

    Args:
        metric (Tensor): What is compared by cosine similarity, (B, N, D).
        num_merged (int): Pairs to merge, at most (N - num_prefix) // 2.
        num_prefix (int): Tokens of the prefix. Defaults to 1, CLS.

    Returns:
        tuple[Tensor, int]: The new position of each token, (B, N), and the
        number of new tokens. The prefix comes first, then the even ones
        that are left.
    """
    y = F.normalize(metric[:, num_prefix:], dim=-1)
    even = num_prefix % 2  # where the tokens at even positions start
    similarity = y[:, even::2] @ y[:, 1 - even :: 2].transpose(1, 2)
    best, partner = similarity.max(dim=-1)  # of each even token
    order = best.argsort(dim=-1, descending=True)
    merges = torch.zeros_like(partner).scatter(1, order[:, :num_merged], 1)
    num_left = num_prefix + best.size(1) - num_merged
    rank = num_prefix + (1 - merges).cumsum(dim=1) - 1
    target = torch.arange(metric.size(1), device=metric.device)
    target = target.repeat(metric.size(0), 1)
    body = target[:, num_prefix:]  # a view
    body[:, even::2] = torch.where(merges > 0, num_left + partner, rank)
    odd = torch.arange(similarity.size(2), device=metric.device)
    body[:, 1 - even :: 2] = num_left + odd
    return target, metric.size(1) - num_merged


def stays(target: Tensor, num_prefix: int) -> Tensor:
    """Tell the tokens that :func:`match` merges into no other, (B, N)."""
    odd = slice(num_prefix + 1 - num_prefix % 2, None, 2)
    left = target < target[:, odd][:, :1]  # these come last
    left[:, odd] = True
    return left


def norm_of_largest(x: Tensor, target: Tensor, left: Tensor, num_tokens: int):
    """Divide the largest norm of a group by that of its target token.

    The scale of the averages in `Token Fusion`, MLERP as it is coded.

    Args:
        x (Tensor): The tokens, (B, N, C).
        target (Tensor): The new token that each goes into, (B, N).
        left (Tensor): Whether it goes into no other one, (B, N).
        num_tokens (int): New tokens M.

    Returns:
        Tensor: (B, M, 1).
    """
    norm = x.norm(dim=-1)
    largest = norm.new_zeros(norm.size(0), num_tokens)
    largest = largest.scatter_reduce(1, target, norm, 'amax').unsqueeze(-1)
    own = sum_into(target, (norm * left).unsqueeze(-1), num_tokens)
    some = own > 0  # not divided by zero, which has no gradient
    return largest.where(some, 1.0) / own.where(some, 1.0)


@MODELS.register_module()
class ToMe(HalvingReducer):
    """Merges the tokens that are most alike, pair by pair.

    `Token Merging: Your ViT But Faster`, section 3, at the stages only. Keys
    of the layer, averaged over heads, are matched between even and odd
    positions; merged tokens are averages weighted with the patches they stand
    for, and in all later layers the logarithm of that number is added to
    their logits. A stage merges as many tokens as the patches that it has to
    lose, but at most half of those after CLS, so that keep rates below 0.5
    leave more tokens than they say. At keep rate 1 nothing happens.

    ``early='prune', fuse='mlerp'`` is `Token Fusion: Bridging the Gap between
    Token Pruning and Token Merging` (ToFu).

    Args:
        *counts: ``keep_rate`` and ``num_tokens`` of :class:`CountedReducer`.
        early (str): What becomes of the first token of a pair up to the
            middle layer: 'merge', or 'prune', it is dropped. Defaults to
            'merge'.
        fuse (str): How pairs are merged: 'average', or 'mlerp', a plain
            average times the largest norm over that of the token merged
            into, which keeps no sizes. Defaults to 'average'.
        **backbone: See :class:`CountedReducer`.

    Raises:
        ValueError: As there, and if ``early`` or ``fuse`` is none of these.
    """

    summary = 'merge pairs of similar patches'

    def __init__(
        self, *counts, early: str = 'merge', fuse: str = 'average', **backbone
    ):
        super().__init__(*counts, **backbone)
        one_of(('merge', 'prune'), early=early)
        one_of(('average', 'mlerp'), fuse=fuse)
        self.early = early
        self.fuse = fuse

    def between(
        self, tokens: Tokens, attended: Attended, stage: int
    ) -> Tokens:
        num_merged = self.num_merged(tokens, stage)
        if num_merged <= 0:
            return tokens.unchanged()
        target, num_tokens = match(
            attended.k.mean(dim=1), num_merged, tokens.num_prefix
        )
        prunes = self.early == 'prune' and self.depths[stage] <= 0.5
        if self.fuse == 'average' and not prunes:
            return tokens.merge(target, num_tokens)
        left = stays(target, tokens.num_prefix)
        share = (left | (not prunes)).to(tokens.x)
        merged = tokens.reduce(Merged.average(target, share, num_tokens))
        if prunes:
            return merged
        scale = norm_of_largest(tokens.x, target, left, num_tokens)
        return merged.with_x(merged.x * scale)
