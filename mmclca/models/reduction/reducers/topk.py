# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import math

import torch.nn.functional as F
from torch import Tensor

from mmclca.registry import MODELS

from ..attention import Attended
from ..tokens import Tokens
from ..trace import after_prefix
from .base import CountedReducer


def top_tokens(score: Tensor, num_kept: int, num_prefix: int = 1) -> Tensor:
    """Index the prefix, and the best other tokens by descending score.

    Args:
        score (Tensor): Scores of the tokens after the prefix,
            (B, N - num_prefix).
        num_kept (int): How many of them to keep.
        num_prefix (int): Tokens of the prefix. Defaults to 1, CLS.

    Returns:
        Tensor: Index into the whole sequence, (B, num_prefix + K).
    """
    return after_prefix(score.topk(num_kept, dim=1).indices, num_prefix)


def protect(score: Tensor, num_protected: int) -> Tensor:
    """Raise the last ``num_protected`` scores of (B, M) above all."""
    if not num_protected:
        return score
    return F.pad(score[:, :-num_protected], (0, num_protected), value=math.inf)


@MODELS.register_module()
class TopK(CountedReducer):
    """Keeps the tokens that CLS attends to most, drops the others.

    `Which Tokens to Use? Investigating Token Reduction in Vision
    Transformers`, section 3. A stage keeps
    ``ceil(keep_rate * (N - num_prefix))`` of the tokens after the prefix,
    cached ones among them, by the mean over heads of the attention of CLS in
    the same layer, in descending order; protected ones, CLR tokens of a cache
    with ``protect_clr``, come before all others. Where that is all of them,
    nothing happens (the authors' code fails there for a keep rate below 1).

    Args:
        keep_rate (float | Sequence[float], optional): Share of the tokens
            that enter a stage. Defaults to None, 1.
        num_tokens (Sequence[int], optional): In its place, the tokens after
            the prefix that each stage keeps. Defaults to None.
        **backbone: See :class:`CountedReducer`.
    """

    summary = 'keep the most important patches, drop the rest'
    needs_cls_token = True
    can_protect = True
    keeps_places = True

    def between(
        self, tokens: Tokens, attended: Attended, stage: int
    ) -> Tokens:
        num_prefix = tokens.num_prefix
        score = attended.cls_attn()[:, :, num_prefix:].mean(dim=1)
        rank = protect(score, tokens.num_protected)
        num_kept = self.num_kept(tokens, stage)
        index = top_tokens(rank, num_kept, num_prefix)
        if index.size(1) == tokens.x.size(1):
            return tokens.unchanged()
        return self.drop(tokens, score, index)

    def num_kept(self, tokens: Tokens, stage: int) -> int:
        """Count the tokens of the body that a stage keeps."""
        available = tokens.body.size(1)
        if self.num_tokens is None:
            return math.ceil(self.keep_rates[stage] * available)
        return min(self.num_tokens[stage], available)

    def drop(self, tokens: Tokens, score: Tensor, index: Tensor) -> Tokens:
        """Reduce to the tokens at ``index``, (B, num_prefix + K)."""
        return tokens.gather(index)
