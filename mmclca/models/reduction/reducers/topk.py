# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import math

import torch.nn.functional as F
from torch import Tensor

from mmclca.registry import MODELS

from ..attention import Attended
from ..tokens import Tokens
from ..trace import after_prefix
from .base import TokenReducer


def top_tokens(score: Tensor, keep_rate: float, num_prefix: int = 1) -> Tensor:
    """Index of the prefix, and of the best other tokens by descending score.

    Args:
        score (Tensor): Scores of the tokens after the prefix,
            (B, N - num_prefix).
        keep_rate (float): Share of them to keep, rounded up.
        num_prefix (int): Tokens of the prefix. Defaults to 1, CLS.

    Returns:
        Tensor: Index into the whole sequence, (B, num_prefix + K).
    """
    num_kept = math.ceil(keep_rate * score.size(1))
    return after_prefix(score.topk(num_kept, dim=1).indices, num_prefix)


def protect(score: Tensor, num_protected: int) -> Tensor:
    """Scores (B, M) in which the last ``num_protected`` are above all."""
    if not num_protected:
        return score
    return F.pad(score[:, :-num_protected], (0, num_protected), value=math.inf)


@MODELS.register_module()
class TopK(TokenReducer):
    """Keeps the tokens that CLS attends to most, drops the others.

    `Which Tokens to Use? Investigating Token Reduction in Vision
    Transformers`, section 3. A stage keeps
    ``ceil(keep_rate * (N - num_prefix))`` of the tokens after the prefix,
    cached ones among them, by the mean over heads of the attention of CLS in
    the same layer, in descending order; protected ones, CLR tokens of a cache
    with ``protect_clr``, come before all others. Where that is all of them,
    nothing happens (the authors' code fails there for a keep rate below 1).

    Args:
        keep_rate (float | Sequence[float]): See :class:`TokenReducer`.
    """

    needs_cls_token = True
    can_protect = True

    def between(
        self, tokens: Tokens, attended: Attended, stage: int
    ) -> Tokens:
        num_prefix = tokens.num_prefix
        score = attended.cls_attn()[:, :, num_prefix:].mean(dim=1)
        rank = protect(score, tokens.num_protected)
        index = top_tokens(rank, self.keep_rates[stage], num_prefix)
        if index.size(1) == tokens.x.size(1):
            return tokens.unchanged()
        return self.drop(tokens, score, index)

    def drop(self, tokens: Tokens, score: Tensor, index: Tensor) -> Tokens:
        """Reduce to the tokens at ``index``, (B, num_prefix + K)."""
        return tokens.gather(index)
