# Copyright (c) mmclca contributors. Licensed under Apache-2.0.

import torch
import torch.nn.functional as F
from torch import Tensor

from mmclca.registry import MODELS

from ..attention import Attended, at_least_float32
from ..operators import even_points, first_not_below, stable_order
from ..tokens import Tokens
from .counted import CountedReducer


def significance(attended: Attended, num_prefix: int = 1) -> Tensor:
    """Score the tokens after the prefix, (B, N - num_prefix), with sum 1.

    The score is the CLS attention times the norm of the value.
    """
    score = attended.cls_attn() * attended.v.norm(dim=-1)
    score = score.sum(dim=1)[:, num_prefix:]
    # sum in float32, as bfloat16 loses small numbers
    score = at_least_float32(score)
    return score / (score.sum(dim=1, keepdim=True) + 1e-6)


def sample(cdf: Tensor, num_tokens: int) -> Tensor:
    """Select tokens at evenly spaced points of a CDF: (B, M), bool.

    ``cdf`` (B, M) is non-decreasing. Several of the ``num_tokens`` points may
    select the same token.
    """
    K = num_tokens + 1
    # as in the authors' code: in float32, some K give an extra point
    points = even_points(1 / (2 * K), (2 * K - 1) / (2 * K), 1 / K, cdf)
    points = points.to(cdf.dtype).expand(cdf.size(0), -1).contiguous()
    above = first_not_below(cdf, points).clamp(max=cdf.size(1) - 1)
    below = (above - 1).clamp(min=0)
    nearer = (points - cdf.gather(1, below)).abs() <= (
        cdf.gather(1, above) - points
    ).abs()
    value = cdf.gather(1, torch.where(nearer, below, above))
    # the first of equal values, as argmin; clamp, as NaN is never found
    first = first_not_below(cdf, value).clamp(max=cdf.size(1) - 1)
    hits = torch.zeros_like(cdf).scatter(1, first, 1.0)
    return hits > 0


@MODELS.register_module()
class ATS(CountedReducer):
    """Sample tokens by significance, as many as the image needs.

    `Adaptive Token Sampling For Efficient Vision Transformers`, section 3.
    Significance is CLS attention times the norm of the values. Tokens are
    sampled at evenly spaced points of its cumulative distribution; duplicates
    are kept once. The count of the stage is the maximum per image.

    Shorter sequences are padded to the longest of the batch, or to the maximum
    in a compiled or exported model. Padding follows the prefix, so that cached
    tokens stay last. It has weight 0 as a key and in averages, so images do
    not depend on the rest of the batch.

    Args:
        keep_rate (float | Sequence[float], optional): See
            :class:`CountedReducer`.
        num_tokens (Sequence[int], optional): See :class:`CountedReducer`.
        backbone (BackboneShape): See :class:`CountedReducer`.
        init_cfg (dict, optional): See :class:`CountedReducer`.
    """

    summary = 'keep a number of patches that depends on the photo'
    needs_cls_token = True
    keeps_places = True
    prop_attn = True

    def after_attention(
        self, tokens: Tokens, attended: Attended, stage: int
    ) -> Tokens:
        num_tokens = self.count_left(tokens, stage)
        with torch.no_grad():
            sampled = self.choose(tokens, attended, num_tokens)
            counts = sampled.sum(dim=1)
            length = min(num_tokens + 1, sampled.size(1))
            if not torch.compiler.is_compiling():
                length = int(counts.max())
            order = stable_order(sampled.long())
            real = sampled.gather(1, order)[:, -length:]
            # pad with copies of CLS, of weight 0
            index = order[:, -length:].where(real, -tokens.num_prefix)
        real = real.to(tokens.features.dtype)
        weight = F.pad(real, (tokens.num_prefix, 0), value=1.0)
        kept = tokens.keep(index)
        return kept.replace(weight=weight)

    def choose(
        self, tokens: Tokens, attended: Attended, num_tokens: int
    ) -> Tensor:
        """Return kept tokens, without prefix and padding: (B, M), bool."""
        cdf = significance(attended, tokens.num_prefix).cumsum(dim=1)
        if tokens.weight is None:
            return sample(cdf, num_tokens)
        # padding comes first; at -inf no point is nearest to it
        padding = tokens.weight[:, tokens.num_prefix :] == 0
        return sample(cdf.masked_fill(padding, -torch.inf), num_tokens)
