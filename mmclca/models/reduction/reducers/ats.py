# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from mmclca.registry import MODELS

from ..attention import Attended, at_least_float32
from ..tokens import Tokens
from .base import CountedReducer


def significance(attended: Attended, num_prefix: int = 1) -> Tensor:
    """Score the tokens after the prefix, (B, N - num_prefix), with sum 1.

    By the attention of CLS times the length of the value.
    """
    score = attended.cls_attn() * attended.v.norm(dim=-1)
    score = score.sum(dim=1)[:, num_prefix:]
    # bfloat16 cannot add up hundreds of small numbers
    score = at_least_float32(score)
    return score / (score.sum(dim=1, keepdim=True) + 1e-6)


def sample(cdf: Tensor, num_tokens: int) -> Tensor:
    """Sample the tokens whose values are nearest to evenly spaced points.

    Args:
        cdf (Tensor): Cumulated significance, not falling, (B, M).
        num_tokens (int): Samples, of which several may be the same token.

    Returns:
        Tensor: Whether a token was sampled, (B, M), bool.
    """
    K = num_tokens + 1
    # the authors' points, in float32: for some K rounding makes one more
    points = torch.arange(
        1 / (2 * K), (2 * K - 1) / (2 * K), 1 / K, device=cdf.device
    )
    points = points.to(cdf.dtype).expand(cdf.size(0), -1).contiguous()
    above = torch.searchsorted(cdf, points).clamp(max=cdf.size(1) - 1)
    below = (above - 1).clamp(min=0)
    nearer = (points - cdf.gather(1, below)).abs() <= (
        cdf.gather(1, above) - points
    ).abs()
    value = cdf.gather(1, torch.where(nearer, below, above))
    # of equal ones, as argmin does; none is found among values of NaN
    first = torch.searchsorted(cdf, value).clamp(max=cdf.size(1) - 1)
    hits = torch.zeros_like(cdf).scatter(1, first, 1.0)
    return hits > 0


@MODELS.register_module()
class ATS(CountedReducer):
    """Samples tokens by significance; an image keeps as many as it needs.

    `Adaptive Token Sampling For Efficient Vision Transformers`, section 3.
    Tokens are drawn where evenly spaced points meet the distribution function
    of the attention of CLS times the length of the values; one drawn several
    times is kept once. The count of the stage is the most that an image
    keeps. Shorter images are padded to the longest of the batch, to that
    count in a compiled or exported model. Padding comes right after the
    prefix, so that the last tokens are an image's own; it weighs nothing as a
    key and in averages, and images do not depend on each other.

    Args:
        keep_rate (float | Sequence[float], optional): See
            :class:`CountedReducer`.
        num_tokens (Sequence[int], optional): See there.
        **backbone: See there.
    """

    summary = 'keep a number of patches that depends on the photo'
    needs_cls_token = True
    keeps_places = True
    prop_attn = True

    def between(
        self, tokens: Tokens, attended: Attended, stage: int
    ) -> Tokens:
        num_tokens = self.count_for(tokens, stage)
        with torch.no_grad():
            sampled = self.choose(tokens, attended, num_tokens)
            counts = sampled.sum(dim=1)
            length = min(num_tokens + 1, sampled.size(1))
            if not torch.compiler.is_compiling():
                length = int(counts.max())
            order = sampled.long().argsort(dim=1, stable=True)
            real = sampled.gather(1, order)[:, -length:]
            # padding is CLS once more, of weight 0
            index = order[:, -length:].where(real, -tokens.num_prefix)
        real = real.to(tokens.x.dtype)
        weight = F.pad(real, (tokens.num_prefix, 0), value=1.0)
        kept = tokens.keep(index)
        return replace(kept, weight=weight)

    def choose(
        self, tokens: Tokens, attended: Attended, num_tokens: int
    ) -> Tensor:
        """Choose which of the body to keep, never padding: (B, M), bool."""
        cdf = significance(attended, tokens.num_prefix).cumsum(dim=1)
        if tokens.weight is None:
            return sample(cdf, num_tokens)
        # padding comes first: no point is nearest to it
        padding = tokens.weight[:, tokens.num_prefix :] == 0
        return sample(cdf.masked_fill(padding, -torch.inf), num_tokens)
