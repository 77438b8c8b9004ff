# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import math

import torch.nn.functional as F
from torch import Tensor

from mmclca.registry import MODELS

from ..attention import Attended
from ..tokens import Tokens
from ..trace import prepend_prefix
from .counted import CountedReducer


def top_tokens(score: Tensor, num_kept: int, num_prefix: int = 1) -> Tensor:
    """Return the positions of the prefix and of the best tokens after it.

    ``score`` is (B, N - num_prefix); the positions are (B, num_prefix + K),
    other tokens by descending score.
    """
    return prepend_prefix(score.topk(num_kept, dim=1).indices, num_prefix)


def protect(score: Tensor, num_protected: int) -> Tensor:
    """Set the last ``num_protected`` scores of (B, M) to infinity."""
    if not num_protected:
        return score
    return F.pad(score[:, :-num_protected], (0, num_protected), value=math.inf)


@MODELS.register_module()
class TopK(CountedReducer):
    """Keep the tokens with most CLS attention, drop the rest.

    `Which Tokens to Use? Investigating Token Reduction in Vision
    Transformers`, section 3. A stage keeps ``ceil(keep_rate * (N -
    num_prefix))`` of the tokens after the prefix, cached ones included, in
    descending order of the CLS attention of the layer, averaged over heads.
    Protected tokens, the CLR tokens of a cache with ``protect_clr``, rank
    first. If all tokens are kept, they are unchanged (the authors' code fails
    then for a keep rate below 1).

    Args:
        keep_rate (float | Sequence[float], optional): Share of the input
            tokens of a stage. Defaults to None, 1.
        num_tokens (Sequence[int], optional): Kept tokens per stage, without
            the prefix; replaces ``keep_rate``. Defaults to None.
        backbone (BackboneShape): See :class:`CountedReducer`.
        init_cfg (dict, optional): See :class:`CountedReducer`.
    """

    summary = 'keep the most important patches, drop the rest'
    needs_cls_token = True
    can_protect = True
    keeps_places = True

    def after_attention(
        self, tokens: Tokens, attended: Attended, stage: int
    ) -> Tokens:
        num_prefix = tokens.num_prefix
        score = attended.cls_attn()[:, :, num_prefix:].mean(dim=1)
        rank = protect(score, tokens.num_protected)
        num_kept = self.count_kept(tokens, stage)
        index = top_tokens(rank, num_kept, num_prefix)
        if index.size(1) == tokens.features.size(1):
            return tokens.unchanged()
        return self.drop(tokens, score, index)

    def count_kept(self, tokens: Tokens, stage: int) -> int:
        """Count the tokens that a stage keeps, without the prefix."""
        available = tokens.after_prefix.size(1)
        if self.num_tokens is None:
            return math.ceil(self.keep_rates[stage] * available)
        return min(self.num_tokens[stage], available)

    def drop(self, tokens: Tokens, score: Tensor, index: Tensor) -> Tokens:
        """Reduce to the tokens at ``index``, (B, num_prefix + K).

        Subclasses may also use ``score`` (B, N - num_prefix), the CLS
        attention of the tokens after the prefix; here it is unused.
        """
        return tokens.gather(index)
