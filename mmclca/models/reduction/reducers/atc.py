# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Sequence
from typing import Literal

from mmclca.registry import MODELS
from mmclca.utils.messages import check_choice

from ..attention import Attended
from ..linkage import LINKAGES, agglomerate
from ..operators import unit_length
from ..tokens import Tokens
from .base import VIT_BASE, BackboneShape
from .counted import CountedReducer


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
        keep_rate (float | Sequence[float], optional): See
            :class:`CountedReducer`.
        num_tokens (Sequence[int], optional): See :class:`CountedReducer`.
        linkage (str): Cluster distance: 'average', largest ('complete') or
            smallest ('single') distance between their tokens. Defaults to
            'average'.
        prop_attn (bool): Whether sizes bias the attention and weight later
            averages; otherwise each stage starts with equal sizes. Defaults to
            True.
        backbone (BackboneShape): See :class:`CountedReducer`.
        init_cfg (dict, optional): See :class:`CountedReducer`.

    Raises:
        Error: As :class:`CountedReducer`, or if the linkage is unknown.
    """

    summary = 'merge groups of similar patches, most similar first'

    def __init__(
        self,
        keep_rate: float | Sequence[float] | None = None,
        num_tokens: Sequence[int] | None = None,
        *,
        linkage: Literal['average', 'complete', 'single'] = 'average',
        prop_attn: bool = True,
        backbone: BackboneShape = VIT_BASE,
        init_cfg: dict | None = None,
    ):
        super().__init__(
            keep_rate, num_tokens, backbone=backbone, init_cfg=init_cfg
        )
        check_choice(LINKAGES, linkage=linkage)
        self.linkage = linkage
        self.prop_attn = prop_attn

    def after_attention(
        self, tokens: Tokens, attended: Attended, stage: int
    ) -> Tokens:
        num_removed = self.count_removed(tokens, stage)
        if not num_removed:
            return tokens.unchanged()
        num_clusters = tokens.after_prefix.size(1) - num_removed
        metric = attended.k.mean(dim=1)[:, tokens.num_prefix :].detach()
        label = agglomerate(unit_length(metric), num_clusters, self.linkage)
        merged = tokens.merge_after_prefix(label, num_clusters)
        return merged if self.prop_attn else merged.replace(weight=None)
