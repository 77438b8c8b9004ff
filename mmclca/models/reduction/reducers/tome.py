# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from dataclasses import replace

import torch
import torch.nn.functional as F
from mmengine.logging import MMLogger
from torch import Tensor

from mmclca.registry import MODELS

from ..attention import Attended
from ..tokens import Tokens
from ..trace import Merged, sum_into
from .base import CountedReducer


@torch.no_grad()
def match(
    metric: Tensor, num_merged: int, num_prefix: int = 1
) -> tuple[Tensor, int]:
    """Bipartite soft matching: which tokens merge into which.

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
    B, N, _ = metric.shape
    metric = F.normalize(metric, dim=-1)
    similarity = metric[:, ::2] @ metric[:, 1::2].transpose(1, 2)
    even, odd = (num_prefix + 1) // 2, num_prefix // 2
    # to set items may make a tensor on the CPU
    similarity[:, :even].fill_(-torch.inf)
    similarity[:, :, :odd].fill_(-torch.inf)
    best, partner = similarity.max(dim=-1)  # of each even token
    order = best.argsort(dim=-1, descending=True)
    merges = torch.zeros_like(partner).scatter(1, order[:, :num_merged], 1)
    num_left = best.size(1) - num_merged
    rank = (1 - merges).cumsum(dim=1) - 1
    target = partner.new_empty(B, N)
    target[:, ::2] = torch.where(merges > 0, num_left + partner, rank)
    target[:, 1::2] = num_left + torch.arange(N // 2, device=metric.device)
    if odd:
        target = prefix_first(target, num_prefix, num_left)
    return target, N - num_merged


def prefix_first(target: Tensor, num_prefix: int, num_left: int) -> Tensor:
    """New positions in which the prefix comes first.

    Args:
        target (Tensor): New positions, (B, N): even tokens that are left,
            then odd ones.
        num_prefix (int): Tokens of the prefix, even and odd ones in turn.
        num_left (int): Even tokens that are left.
    """
    even, odd = (num_prefix + 1) // 2, num_prefix // 2
    later = torch.where(target < num_left, target + odd, target)
    first = torch.where(target < even, 2 * target, later)
    of_odd = (target >= num_left) & (target < num_left + odd)
    return torch.where(of_odd, 2 * (target - num_left) + 1, first)


@MODELS.register_module()
class ToMe(CountedReducer):
    """Merges the tokens that are most alike, pair by pair.

    `Token Merging: Your ViT But Faster`, section 3, at the stages only. Keys
    of the layer, averaged over heads, are matched between even and odd
    positions; merged tokens are averages weighted with the patches they stand
    for, and in all later layers the logarithm of that number is added to
    their logits. A stage merges as many tokens as the patches that it has to
    lose, but at most half of those after CLS, so that keep rates below 0.5
    leave more tokens than they say. At keep rate 1 nothing happens.

    Args:
        keep_rate (float | Sequence[float]): See :class:`CountedReducer`.
        num_tokens (Sequence[int], optional): See there.
        **backbone: See there.
    """

    least = 0  # of the patches; half of the tokens stay in any case

    def __init__(self, keep_rate=1.0, num_tokens=None, **backbone):
        super().__init__(keep_rate, num_tokens, **backbone)
        counts = [self.count(s) for s in range(-1, self.num_stages)]
        pairs = list(zip(counts, counts[1:], strict=False))
        if any(left < entering // 2 for entering, left in pairs):
            MMLogger.get_current_instance().warning(
                f'ToMe merges at most half of the tokens a stage: of the '
                f'patches, stages are to leave {counts[1:]} of {counts[0]}, '
                'more will be left'
            )

    def between(
        self, tokens: Tokens, attended: Attended, stage: int
    ) -> Tokens:
        available = self.count_for(tokens, stage - 1)
        surplus = available - self.count_for(tokens, stage)
        num_merged = min(surplus, tokens.body.size(1) // 2)
        if num_merged <= 0:
            return tokens.unchanged()
        size = tokens.weights
        target, num_tokens = match(
            attended.k.mean(dim=1), num_merged, tokens.num_prefix
        )
        merged = tokens.reduce(Merged.average(target, size, num_tokens))
        size = sum_into(target, size.unsqueeze(-1), num_tokens).squeeze(-1)
        return replace(merged, weight=size)

    def key_bias(self, tokens: Tokens) -> Tensor | None:
        return tokens.log_weight
