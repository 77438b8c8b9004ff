# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Sequence
from numbers import Real
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from mmclca.errors import Error
from mmclca.registry import MODELS
from mmclca.utils.messages import check_choice

from ..attention import Attended, at_least_float32
from ..tokens import Tokens
from ..trace import ranks
from .base import VIT_BASE, BackboneShape
from .counted import HalvingReducer


def rareness(x: Tensor) -> Tensor:
    """Divide the minimum of positive numbers (B, N) by each number."""
    x = at_least_float32(x)
    return x.amin(dim=1, keepdim=True) / x


@torch.no_grad()
def match_both_ways(
    score: Tensor, num_merged: int, bidirectional: bool
) -> tuple[Tensor, Tensor]:
    """Choose the best pairs of two token sets to merge, by scores (B, I, J).

    If ``bidirectional``, half of the merges go from the second set, merged
    tokens included, to the rest of the first set. Returns the new positions of
    both sets, (B, I) and (B, J): the remaining tokens of the first set in
    order, then the second set, best pairs first.
    """
    num_first, num_second = score.shape[1:]
    forth = num_merged // 2 if bidirectional else num_merged
    best, partner = score.max(dim=2)
    goes = ranks(best) < forth  # (B, I)
    first = (~goes).long().cumsum(dim=1) - 1
    second = torch.arange(num_second, device=score.device)
    second = second.expand(score.size(0), -1)
    second = second + num_first - forth
    if bidirectional:
        left = score.masked_fill(goes.unsqueeze(2), -torch.inf)
        best, into = left.max(dim=1)
        rank = ranks(best)
        back = num_merged - forth
        second = torch.where(
            rank < back, first.gather(1, into), num_first - num_merged + rank
        )
    return torch.where(goes, second.gather(1, partner), first), second


@MODELS.register_module()
class MCTF(HalvingReducer):
    """Merge similar tokens with little attention and few patches.

    `Multi-criteria Token Fusion with One-step-ahead Attention for Efficient
    Vision Transformers`. The attention is that of the next layer, computed
    once for the criteria and again for the remaining tokens. Tokens at even
    positions are matched with odd ones, then odd ones with the remaining even
    ones. Sizes bias the attention as in :class:`ToMe`, with the same limit of
    one half.

    Args:
        keep_rate (float | Sequence[float], optional): See
            :class:`CountedReducer`.
        num_tokens (Sequence[int], optional): See :class:`CountedReducer`.
        tau (Sequence[float]): Temperatures of similarity, information (tokens
            with little attention merge first) and size; 0 disables a
            criterion. Defaults to (1, 20, 40).
        bidirectional (bool): Whether tokens are matched in both directions.
            Defaults to True.
        pooling (str): Averaging weights: 'weighted', received attention times
            size, or 'size'. Defaults to 'weighted'.
        variant (str): Only 'precise', the attention described above.
        backbone (BackboneShape): See :class:`CountedReducer`.
        init_cfg (dict, optional): See :class:`CountedReducer`.

    Raises:
        Error: As :class:`CountedReducer`, or if ``tau`` is not three
            numbers of at least 0, or ``pooling`` or ``variant`` is unknown.
    """

    summary = 'merge similar patches of low importance'
    needs_attention = True

    def __init__(
        self,
        keep_rate: float | Sequence[float] | None = None,
        num_tokens: Sequence[int] | None = None,
        *,
        tau: Sequence[float] = (1, 20, 40),
        bidirectional: bool = True,
        pooling: Literal['weighted', 'size'] = 'weighted',
        variant: Literal['precise'] = 'precise',
        backbone: BackboneShape = VIT_BASE,
        init_cfg: dict | None = None,
    ):
        super().__init__(
            keep_rate, num_tokens, backbone=backbone, init_cfg=init_cfg
        )
        is_list = isinstance(tau, Sequence) and len(tau) == 3
        if not (is_list and all(isinstance(t, Real) and t >= 0 for t in tau)):
            raise Error(f'tau={tau!r} must be three numbers, 0 or more')
        check_choice(('weighted', 'size'), pooling=pooling)
        check_choice(('precise',), variant=variant)
        self.tau = tau
        self.bidirectional = bidirectional
        self.pooling = pooling

    def before_attention(
        self, tokens: Tokens, attended: Attended, stage: int
    ) -> Tokens:
        num_merged = self.count_merged(tokens, stage)
        if num_merged <= 0:
            return tokens.unchanged()
        received = at_least_float32(attended.received(chunk_size=32))
        # mixed heads may have negative weights
        received = received.clamp(min=1e-9)
        first = tokens.num_prefix % 2  # first even position
        even, odd = slice(first, None, 2), slice(1 - first, None, 2)
        both = match_both_ways(
            self.scores(tokens, received, even, odd),
            num_merged,
            self.bidirectional,
        )
        target = both[0].new_empty(tokens.after_prefix.shape[:2])
        target[:, even], target[:, odd] = both
        share = tokens.weights
        if self.pooling == 'weighted':
            share = share * received
        num_tokens = tokens.after_prefix.size(1) - num_merged
        return tokens.merge_after_prefix(target, num_tokens, share=share)

    @torch.no_grad()
    def scores(self, tokens: Tokens, received: Tensor, even, odd) -> Tensor:
        """Score the pairs of tokens after the prefix, (B, I, J)."""
        similarity, information, size = self.tau
        y = F.normalize(at_least_float32(tokens.after_prefix), dim=-1)
        score = (0.5 + 0.5 * y[:, even] @ y[:, odd].transpose(1, 2)).clamp(
            min=0
        )
        score = score ** (1 / similarity) if similarity else score**0
        for values, tau in ((received, information), (tokens.weights, size)):
            if tau:
                rare = rareness(values)[:, tokens.num_prefix :] ** (1 / tau)
                score = score * rare[:, even, None] * rare[:, None, odd]
        return score
