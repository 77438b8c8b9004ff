# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Sequence

import torch
from torch import Tensor

from mmclca.registry import MODELS
from mmclca.utils.messages import check_number

from ..attention import Attended, at_least_float32
from ..tokens import Tokens
from ..trace import prepend_prefix, ranks
from .base import VIT_BASE, BackboneShape
from .counted import HalvingReducer
from .tome import match


def scores(attended: Attended, num_prefix: int = 1) -> Tensor:
    """Score the tokens after the prefix, (B, N - num_prefix), with sum 1.

    The score is the CLS attention times the norm of the values of all heads.
    """
    score = attended.cls_attn().sum(dim=1) * attended.v.norm(dim=(1, 3))
    score = at_least_float32(score[:, num_prefix:])
    return score / score.sum(dim=1, keepdim=True)


@MODELS.register_module()
class PPT(HalvingReducer):
    """Prune or merge tokens, depending on the image.

    `PPT: Token Pruning and Pooling for Efficient Vision Transformers`. The
    score of a token is CLS attention times the norm of its value. If the
    scores vary much, the lowest tokens are dropped; otherwise, pairs are
    merged as in :class:`ToMe`. Both leave the same count. Sizes are those of
    :class:`ToMe`.

    Args:
        keep_rate (float | Sequence[float], optional): See
            :class:`CountedReducer`.
        num_tokens (Sequence[int], optional): See :class:`CountedReducer`.
        threshold (float): Variance of the scores from which tokens are
            dropped. Defaults to 3.
        relative (bool): Whether scores are divided by their mean, so that the
            variance does not depend on the patch count; otherwise they sum to
            1, as in the release: 6e-5 or 7e-5 for 196 patches. Defaults to
            True.
        prop_attn (bool): Whether sizes bias the attention. Defaults to True.
        backbone (BackboneShape): See :class:`CountedReducer`.
        init_cfg (dict, optional): See :class:`CountedReducer`.

    Raises:
        Error: As :class:`CountedReducer`, or if ``threshold`` is
            negative.
    """

    summary = 'drop patches or merge pairs, depending on the photo'
    needs_cls_token = True

    def __init__(
        self,
        keep_rate: float | Sequence[float] | None = None,
        num_tokens: Sequence[int] | None = None,
        *,
        threshold: float = 3.0,
        relative: bool = True,
        prop_attn: bool = True,
        backbone: BackboneShape = VIT_BASE,
        init_cfg: dict | None = None,
    ):
        super().__init__(
            keep_rate, num_tokens, backbone=backbone, init_cfg=init_cfg
        )
        check_number(threshold=threshold)
        self.threshold = threshold
        self.relative = relative
        self.prop_attn = prop_attn

    def after_attention(
        self, tokens: Tokens, attended: Attended, stage: int
    ) -> Tokens:
        num_merged = self.count_merged(tokens, stage)
        if num_merged <= 0:
            return tokens.unchanged()
        num_prefix = tokens.num_prefix
        with torch.no_grad():
            score = scores(attended, num_prefix)
            prunes = self.prunes(score).unsqueeze(1)
            rank = prepend_prefix(ranks(score), num_prefix)
        metric = attended.k.mean(dim=1)
        target, num_tokens = match(metric, num_merged, num_prefix)
        dropped = prunes & (rank >= num_tokens)
        target = torch.where(prunes, rank.where(~dropped, 0), target)
        return tokens.merge(target, num_tokens, tokens.weights * ~dropped)

    def prunes(self, score: Tensor) -> Tensor:
        """Return whether to drop tokens per image, by scores (B, M)."""
        scale = score.size(1) ** 2 if self.relative else 1
        return scale * score.var(dim=1) >= self.threshold
