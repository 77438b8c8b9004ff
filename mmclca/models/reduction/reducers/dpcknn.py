# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from mmclca.registry import MODELS
from mmclca.utils.messages import check_integer

from ..attention import at_least_float32
from ..clustering import dpc_knn
from ..tokens import Tokens
from ..trace import Merged
from .base import VIT_BASE, BackboneShape, init_linear
from .counted import CountedReducer


class Importance(nn.Module):
    """Learned weights of tokens within their clusters."""

    def __init__(self, embed_dims: int):
        super().__init__()
        self.score = nn.Linear(embed_dims, 1)
        init_linear(self)

    def forward(self, y: Tensor) -> Tensor:
        """Map tokens (B, N, C) to positive weights (B, N)."""
        score = at_least_float32(self.score(y).squeeze(-1))
        # exp overflows float32 at 88; a common shift of large scores cancels
        # in the average
        surplus = score.detach().amax(dim=1, keepdim=True) - 60
        return (score - surplus.clamp(min=0)).exp()


@MODELS.register_module()
class DPCKNN(CountedReducer):
    """Cluster the patches by density peaks and average each cluster.

    `Not All Tokens Are Equal: Human-centric Visual Analysis via Token
    Clustering Transformer`, section 3.2. CLR and recovered tokens stay
    unchanged at the end. All stages but the last keep at least
    ``num_neighbors`` clusters, as the next stage needs these neighbors. Ties
    are broken by noise in training only, so evaluation is deterministic.

    Args:
        keep_rate (float | Sequence[float], optional): See
            :class:`CountedReducer`.
        num_tokens (Sequence[int], optional): See :class:`CountedReducer`.
        num_neighbors (int): Neighbors that define the density of a token,
            itself included. Defaults to 5.
        equal_weight (bool): Whether all tokens of a cluster have equal
            weights, without a learned score. Defaults to False.
        backbone (BackboneShape): See :class:`CountedReducer`.
        init_cfg (dict, optional): See :class:`CountedReducer`.

    Raises:
        Error: As :class:`CountedReducer`, or if ``num_neighbors`` is not
            an integer from 1 to the patch count.
    """

    summary = 'merge groups of similar patches'
    noise = 1e-6

    def __init__(
        self,
        keep_rate: float | Sequence[float] | None = None,
        num_tokens: Sequence[int] | None = None,
        *,
        num_neighbors: int = 5,
        equal_weight: bool = False,
        backbone: BackboneShape = VIT_BASE,
        init_cfg: dict | None = None,
    ):
        super().__init__(
            keep_rate, num_tokens, backbone=backbone, init_cfg=init_cfg
        )
        check_integer(maximum=self.num_patches, num_neighbors=num_neighbors)
        self.num_neighbors = num_neighbors
        self.stages = None
        if not equal_weight:
            self.stages = nn.ModuleList(
                Importance(self.embed_dims) for _ in range(self.num_stages)
            )

    def count_patches(self, stage: int, num_patches: int | None = None) -> int:
        count = super().count_patches(stage, num_patches)
        last = stage == self.num_stages - 1
        if last or self.num_tokens is not None:
            return count
        return max(count, self.num_neighbors)

    def before_layer(self, tokens: Tokens, stage: int) -> Tokens:
        num_cached, num_prefix = tokens.num_cached, tokens.num_prefix
        y = tokens.features[
            :, num_prefix : tokens.features.size(1) - num_cached
        ]
        num_clusters = min(self.count_left(tokens, stage), y.size(1))
        num_neighbors = min(self.num_neighbors, y.size(1))
        noise = self.noise if self.training else 0.0
        label = dpc_knn(y, num_clusters, num_neighbors, noise)
        weight = torch.ones_like(y[..., 0])
        if self.stages is not None:
            weight = self.stages[stage](y)
        merged = Merged.average(label, weight, num_clusters, eps=1e-6)
        tokens = tokens.reduce(merged.within(num_prefix, num_cached))
        return tokens.replace(num_cached=num_cached)
