# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mmclca.registry import MODELS
from mmclca.utils.messages import check_integer, check_number

from ..attention import at_least_float32
from ..tokens import Tokens
from .base import VIT_BASE, BackboneShape
from .counted import CountedReducer


def transport(score: Tensor, eps: float, iterations: int) -> Tensor:
    """Solve entropy-regularized optimal transport by Sinkhorn iterations.

    ``score`` (B, K, N) is the similarity between centers and tokens, ``eps``
    the weight of the entropy. Returns weights (B, K, N) with columns that sum
    to 1.
    """
    K, N = score.shape[1:]
    marginal = -math.log(K + N)
    plan = at_least_float32(score) / eps
    for _ in range(iterations):
        plan = plan - plan.logsumexp(dim=2, keepdim=True) + marginal
        plan = plan - plan.logsumexp(dim=1, keepdim=True) + marginal
    return (plan - marginal).exp().to(score.dtype)


@MODELS.register_module()
class Sinkhorn(CountedReducer):
    """Mix the tokens after CLS by optimal transport to learned centers.

    `Which Tokens to Use? Investigating Token Reduction in Vision
    Transformers`, section 3; iterations as in `Sinkformers` and `SuperGlue`.
    Tokens and centers are normalized to unit length, and the sums are over
    normalized tokens. CLR and recovered tokens are mixed with the patches.

    Args:
        keep_rate (float | Sequence[float], optional): See
            :class:`CountedReducer`.
        num_tokens (Sequence[int], optional): See :class:`CountedReducer`.
        eps (float): Entropy weight. Defaults to 1.
        num_iterations (int): Sinkhorn iterations. Defaults to 3.
        backbone (BackboneShape): See :class:`CountedReducer`.
        init_cfg (dict, optional): See :class:`CountedReducer`.

    Raises:
        Error: As :class:`CountedReducer`, or if ``eps`` or
            ``num_iterations`` is not positive.
    """

    summary = 'mix all patches into fewer tokens, with trained weights'
    fixed = 'has parameters for each remaining token'

    def __init__(
        self,
        keep_rate: float | Sequence[float] | None = None,
        num_tokens: Sequence[int] | None = None,
        *,
        eps: float = 1.0,
        num_iterations: int = 3,
        backbone: BackboneShape = VIT_BASE,
        init_cfg: dict | None = None,
    ):
        super().__init__(
            keep_rate, num_tokens, backbone=backbone, init_cfg=init_cfg
        )
        check_number(minimum=1e-6, eps=eps)
        check_integer(num_iterations=num_iterations)
        self.eps = eps
        self.num_iterations = num_iterations
        self.stages = nn.ParameterList(
            torch.randn(self.count_patches(stage), self.embed_dims)
            for stage in range(self.num_stages)
        )

    def before_layer(self, tokens: Tokens, stage: int) -> Tokens:
        y = F.normalize(tokens.after_prefix, dim=-1)
        centers = F.normalize(self.stages[stage], dim=-1)
        score = centers @ y.transpose(1, 2)
        mix = transport(score, self.eps, self.num_iterations)
        return tokens.with_after_prefix(y).mix_after_prefix(mix)
