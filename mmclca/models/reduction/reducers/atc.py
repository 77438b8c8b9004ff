# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from dataclasses import replace
from typing import Literal

import torch.nn.functional as F

from mmclca.registry import MODELS
from mmclca.utils.messages import check_choice

from ..attention import Attended
from ..linkage import LINKAGES, agglomerate
from ..tokens import Tokens
from .base import CountedReducer


@MODELS.register_module()
class ATC(CountedReducer):
    """Join the nearest clusters of tokens (agglomerative clustering).

    `Agglomerative Token Clustering`. Keys of the layer, averaged over heads,
    are clustered bottom-up by cosine distance. Each cluster becomes the
    average of its tokens, weighted by their patch counts (sizes); all later
    layers add the log size to the attention logits. Counts are exact at any
    keep rate. Cached tokens are clustered with the patches and do not count.
    At keep rate 1, tokens are unchanged.

    Args:
        *counts: ``keep_rate`` and ``num_tokens``, see :class:`CountedReducer`.
        linkage (str): Cluster distance: 'average', largest ('complete') or
            smallest ('single') distance between their tokens. Defaults to
            'average'.
        prop_attn (bool): Whether sizes bias the attention and weight later
            averages; otherwise each stage starts with equal sizes. Defaults to
            True.
        **backbone: See :class:`CountedReducer`.

    Raises:
        Error: As :class:`CountedReducer`, or if the linkage is unknown.
    """

    summary = 'merge groups of similar patches, most similar first'

    def __init__(
        self,
        *counts,
        linkage: Literal['average', 'complete', 'single'] = 'average',
        prop_attn: bool = True,
        **backbone,
    ):
        super().__init__(*counts, **backbone)
        check_choice(LINKAGES, linkage=linkage)
        self.linkage = linkage
        self.prop_attn = prop_attn

    def after_attention(
        self, tokens: Tokens, attended: Attended, stage: int
    ) -> Tokens:
        surplus = self.surplus(tokens, stage)
        if not surplus:
            return tokens.unchanged()
        num_clusters = tokens.after_prefix.size(1) - surplus
        metric = attended.k.mean(dim=1)[:, tokens.num_prefix :].detach()
        metric = F.normalize(metric, dim=-1)
        label = agglomerate(metric, num_clusters, self.linkage)
        merged = tokens.merge_after_prefix(label, num_clusters)
        return merged if self.prop_attn else replace(merged, weight=None)
