# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from mmclca.registry import MODELS
from mmclca.utils.messages import integer

from ..attention import Attended
from ..clustering import k_medoids
from ..tokens import Tokens
from .base import CountedReducer


@MODELS.register_module()
class KMedoids(CountedReducer):
    """Clusters the tokens after CLS and keeps the medoid of each cluster.

    `Which Tokens to Use? Investigating Token Reduction in Vision
    Transformers`, section 3; `Token Pooling in Vision Transformers for Image
    Classification`. The weight of a token is the attention that CLS pays to
    it in the same layer, averaged over heads. Sums of distances cover the
    members of a cluster, which the survey's code misses.

    Args:
        *counts: ``keep_rate`` and ``num_tokens`` of :class:`CountedReducer`.
        num_iterations (int): Updates of the medoids. Defaults to 3.
        attention_of_all (bool): Whether tokens weigh as much as all tokens
            attend to them, the survey's way; a few queries of the map at a
            time. Defaults to False.
        **backbone: See :class:`CountedReducer`.

    Raises:
        ValueError: As there, and if ``num_iterations`` is negative.
    """

    summary = 'keep the most typical patch of each group'

    def __init__(
        self,
        *counts,
        num_iterations: int = 3,
        attention_of_all: bool = False,
        **backbone,
    ):
        super().__init__(*counts, **backbone)
        integer(least=0, num_iterations=num_iterations)
        self.num_iterations = num_iterations
        self.attention_of_all = attention_of_all

    @property
    def needs_cls_token(self) -> bool:
        """Whether tokens weigh what CLS attends to."""
        return not self.attention_of_all

    def between(
        self, tokens: Tokens, attended: Attended, stage: int
    ) -> Tokens:
        if self.attention_of_all:
            weight = attended.received()
        else:
            weight = attended.cls_attn().mean(dim=1)
        x, weight = tokens.body, weight[:, tokens.num_prefix :]
        num = min(self.count_for(tokens, stage), x.size(1))
        return tokens.keep(k_medoids(x, weight, num, self.num_iterations))
