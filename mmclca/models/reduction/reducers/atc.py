# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from dataclasses import replace

import torch.nn.functional as F

from mmclca.registry import MODELS
from mmclca.utils.messages import one_of

from ..attention import Attended
from ..linkage import LINKAGES, agglomerate
from ..tokens import Tokens
from .base import CountedReducer


@MODELS.register_module()
class ATC(CountedReducer):
    """Joins the nearest clusters of tokens until as few are left as asked.

    `Agglomerative Token Clustering`. Keys of the layer, averaged over heads,
    are clustered bottom-up by cosine distance; each cluster becomes the
    average of its tokens, weighted with the patches they stand for, and in
    all later layers the logarithm of that number is added to their logits.
    Counts are exact at any keep rate; cached tokens are clustered with the
    patches and come on top of the count. At keep rate 1 nothing happens.

    Args:
        *counts: ``keep_rate`` and ``num_tokens`` of :class:`CountedReducer`.
        linkage (str): Distance of two clusters: the 'average' of all pairs
            of their tokens, the largest ('complete') or the smallest
            ('single'). Defaults to 'average'.
        prop_attn (bool): Whether sizes act on the attention and on later
            averages; else a stage forgets them. Defaults to True.
        **backbone: See :class:`CountedReducer`.

    Raises:
        ValueError: As there, and if there is no such linkage.
    """

    summary = 'merge groups of similar patches, most similar first'

    def __init__(
        self,
        *counts,
        linkage: str = 'average',
        prop_attn: bool = True,
        **backbone,
    ):
        super().__init__(*counts, **backbone)
        one_of(LINKAGES, linkage=linkage)
        self.linkage = linkage
        self.prop_attn = prop_attn

    def between(
        self, tokens: Tokens, attended: Attended, stage: int
    ) -> Tokens:
        surplus = self.surplus(tokens, stage)
        if not surplus:
            return tokens.unchanged()
        num_clusters = tokens.body.size(1) - surplus
        metric = attended.k.mean(dim=1)[:, tokens.num_prefix :].detach()
        metric = F.normalize(metric, dim=-1)
        label = agglomerate(metric, num_clusters, self.linkage)
        merged = tokens.merge_body(label, num_clusters)
        return merged if self.prop_attn else replace(merged, weight=None)
