# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import math

import torch
from torch import Tensor

from mmclca.registry import MODELS

from ..attention import Attended
from ..tokens import Tokens
from .base import TokenReducer


def top_tokens(score: Tensor, keep_rate: float) -> Tensor:
    """Index of the best tokens by descending score, CLS ahead of them.

    Args:
        score (Tensor): Scores of the tokens after CLS, (B, N - 1).
        keep_rate (float): Share of them to keep, rounded up.

    Returns:
        Tensor: Index into the sequence with CLS, (B, 1 + K).
    """
    num_kept = math.ceil(keep_rate * score.size(1))
    index = score.topk(num_kept, dim=1).indices + 1
    return torch.cat((torch.zeros_like(index[:, :1]), index), dim=1)


@MODELS.register_module()
class TopK(TokenReducer):
    """Keeps the tokens that CLS attends to most, drops the others.

    `Which Tokens to Use? Investigating Token Reduction in Vision
    Transformers`, section 3. A stage keeps
    ``ceil(keep_rate * (N - 1))`` of the tokens after CLS, cached ones
    among them, by the mean over heads of the attention of CLS in the same
    layer, in descending order. Where that is all of them, nothing happens
    (the authors' code fails there for a keep rate below 1).

    Args:
        keep_rate (float | Sequence[float]): See :class:`TokenReducer`.
    """

    needs_cls_token = True

    def between(
        self, tokens: Tokens, attended: Attended, stage: int
    ) -> Tokens:
        score = attended.cls_attn()[:, :, 1:].mean(dim=1)  # (B, N - 1)
        index = top_tokens(score, self.keep_rates[stage])
        if index.size(1) == tokens.x.size(1):
            return tokens.unchanged()
        return self.drop(tokens, score, index)

    def drop(self, tokens: Tokens, score: Tensor, index: Tensor) -> Tokens:
        """Reduce to the tokens at ``index``, (B, 1 + K)."""
        return tokens.gather(index)
