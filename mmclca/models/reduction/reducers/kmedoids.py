# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Sequence

from mmclca.registry import MODELS
from mmclca.utils.messages import check_integer

from ..attention import Attended
from ..clustering import k_medoids
from ..tokens import Tokens
from .base import VIT_BASE, BackboneShape
from .counted import CountedReducer


@MODELS.register_module()
class KMedoids(CountedReducer):
    """Cluster the tokens after CLS and keep the medoid of each cluster.

    `Which Tokens to Use? Investigating Token Reduction in Vision
    Transformers`, section 3; `Token Pooling in Vision Transformers for Image
    Classification`. Tokens are weighted by the CLS attention of the layer,
    averaged over heads. Distances are summed within clusters, unlike in the
    survey's code.

    Args:
        keep_rate (float | Sequence[float], optional): See
            :class:`CountedReducer`.
        num_tokens (Sequence[int], optional): See :class:`CountedReducer`.
        num_iterations (int): Updates of the medoids. Defaults to 3.
        attention_of_all (bool): Whether weights are the attention received
            from all tokens, as in the survey, in place of CLS attention.
            Defaults to False.
        backbone (BackboneShape): See :class:`CountedReducer`.
        init_cfg (dict, optional): See :class:`CountedReducer`.

    Raises:
        Error: As :class:`CountedReducer`, or if ``num_iterations`` is
            negative.
    """

    summary = 'keep the most typical patch of each group'

    def __init__(
        self,
        keep_rate: float | Sequence[float] | None = None,
        num_tokens: Sequence[int] | None = None,
        *,
        num_iterations: int = 3,
        attention_of_all: bool = False,
        backbone: BackboneShape = VIT_BASE,
        init_cfg: dict | None = None,
    ):
        super().__init__(
            keep_rate, num_tokens, backbone=backbone, init_cfg=init_cfg
        )
        check_integer(minimum=0, num_iterations=num_iterations)
        self.num_iterations = num_iterations
        self.attention_of_all = attention_of_all

    @property
    def needs_cls_token(self) -> bool:
        """Whether weights are CLS attention."""
        return not self.attention_of_all

    def after_attention(
        self, tokens: Tokens, attended: Attended, stage: int
    ) -> Tokens:
        if self.attention_of_all:
            weight = attended.received()
        else:
            weight = attended.cls_attn().mean(dim=1)
        x, weight = tokens.after_prefix, weight[:, tokens.num_prefix :]
        num = min(self.count_left(tokens, stage), x.size(1))
        return tokens.keep(k_medoids(x, weight, num, self.num_iterations))
