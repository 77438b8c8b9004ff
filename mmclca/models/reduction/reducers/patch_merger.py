# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from mmclca.registry import MODELS

from ..tokens import Tokens
from .base import VIT_BASE, BackboneShape
from .counted import CountedReducer


class Merging(nn.Module):
    """Learned queries over normalized tokens."""

    def __init__(self, embed_dims: int, num_tokens: int):
        super().__init__()
        self.norm = nn.LayerNorm(embed_dims)
        self.queries = nn.Parameter(torch.randn(num_tokens, embed_dims))

    def forward(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return normalized tokens (B, N, C) and weights (B, M, N)."""
        y = self.norm(y)
        return y, (self.queries @ y.transpose(1, 2)).softmax(dim=-1)


@MODELS.register_module()
class PatchMerger(CountedReducer):
    """Mix all tokens after CLS into a fixed number of tokens.

    `Learning to Merge Tokens in Vision Transformers`, section 3: learned
    queries attend to the normalized tokens. As in the CLCA authors' models,
    the sums are over normalized tokens. CLR and recovered tokens are mixed
    with the patches.

    Args:
        keep_rate (float | Sequence[float], optional): See
            :class:`CountedReducer`.
        num_tokens (Sequence[int], optional): See :class:`CountedReducer`.
        backbone (BackboneShape): See :class:`CountedReducer`.
        init_cfg (dict, optional): See :class:`CountedReducer`.
    """

    summary = 'mix all patches into fewer tokens, with trained weights'
    fixed = 'has parameters for each remaining token'

    def __init__(
        self,
        keep_rate: float | Sequence[float] | None = None,
        num_tokens: Sequence[int] | None = None,
        *,
        backbone: BackboneShape = VIT_BASE,
        init_cfg: dict | None = None,
    ):
        super().__init__(
            keep_rate, num_tokens, backbone=backbone, init_cfg=init_cfg
        )
        self.stages = nn.ModuleList(
            Merging(self.embed_dims, self.count_patches(stage))
            for stage in range(self.num_stages)
        )

    def before_layer(self, tokens: Tokens, stage: int) -> Tokens:
        y, mix = self.stages[stage](tokens.after_prefix)
        return tokens.with_after_prefix(y).mix_after_prefix(mix)
