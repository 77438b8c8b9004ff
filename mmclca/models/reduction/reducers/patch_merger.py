# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch
from torch import Tensor, nn

from mmclca.registry import MODELS

from ..tokens import Tokens
from .base import CountedReducer


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
        *counts: ``keep_rate`` and ``num_tokens``, see :class:`CountedReducer`.
        **backbone: See :class:`CountedReducer`.
    """

    summary = 'mix all patches into fewer tokens, with trained weights'
    fixed = 'has parameters for each remaining token'

    def __init__(self, *counts, **backbone):
        super().__init__(*counts, **backbone)
        self.stages = nn.ModuleList(
            Merging(self.embed_dims, self.count(stage))
            for stage in range(self.num_stages)
        )

    def before_layer(self, tokens: Tokens, stage: int) -> Tokens:
        y, mix = self.stages[stage](tokens.after_prefix)
        return tokens.with_after_prefix(y).mix_after_prefix(mix)
