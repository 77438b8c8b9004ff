# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Relative position bias of attention, compatible with token reduction."""

from typing import Any

import torch
import torch.nn.functional as F
from mmpretrain.models.utils import BEiTAttention
from torch import Tensor, nn

from mmclca.errors import Error

from ..reduction.reducers import TokenReducer
from ..reduction.tokens import Tokens
from ..reduction.trace import Appended, Kept
from .position_weights import TABLE


class RelativePositions(nn.Module):
    """Mixin of :class:`TokenReductionViT`: relative position bias.

    As in `BEiT: BERT Pre-Training of Image Transformers
    <https://arxiv.org/abs/2106.08254>`_, each layer has a table of biases,
    initially zero: one number per head for each offset between two patches,
    and three for CLS as query, as key, and as both. The latter apply to the
    whole prefix. A patch keeps its position through reductions. Fused tokens,
    cached tokens and registers have no position and no bias. Tables for
    another grid are interpolated on load. The bias (B, H, N, N) works with
    fused attention.
    """

    img_size: tuple[int, int]
    layers: Any
    may_be_new: tuple[str, ...]
    patch_resolution: tuple[int, int]
    reducer: TokenReducer
    reduces: bool
    relative_index: Tensor

    def set_relative_positions(self, branches: int) -> None:
        """Add a bias table to the attention of each layer.

        Args:
            branches (int): Parallel attentions per layer.

        Raises:
            Error: If the reducer creates tokens without a position, or
                layers have several attention branches.
        """
        mixes = self.reduces and not self.reducer.keeps_places
        if mixes or branches > 1:
            reducer_name = type(self.reducer).__name__
            wrong = reducer_name if mixes else f'branches={branches}'
            raise Error(
                f'rel_pos_bias=True does not support {wrong}; use branches=1, '
                'and TopK, EViT, DynamicViT, ATS or no reducer'
            )
        self.rel_pos_bias = True
        beit = BEiTAttention(1, 1, tuple(self.patch_resolution), True)
        num_entries = beit.num_relative_distance
        # extra zero row: bias of tokens without a position
        index = beit.relative_position_index
        index = F.pad(index, (0, 1, 0, 1), value=num_entries)
        self.register_buffer('relative_index', index, persistent=False)
        for layer in self.layers:
            table = torch.zeros(num_entries, layer.attn.num_heads)
            layer.attn.register_parameter(TABLE, nn.Parameter(table))
        tables = (f'layers.{i}.attn.{TABLE}' for i in range(len(self.layers)))
        self.may_be_new = (*self.may_be_new, *tables)

    def position_bias(self, layer: nn.Module, tokens: Tokens) -> Tensor:
        """Return the bias for each pair of tokens, (B or 1, H, N, N).

        Raises:
            Error: If the image size is not ``img_size``.
        """
        if tokens.num_patches != len(self.relative_index) - 2:
            raise Error(
                f'rel_pos_bias=True needs images of img_size={self.img_size}'
            )
        places = patch_places(tokens)
        index = self.relative_index[places[:, :, None], places[:, None]]
        table = F.pad(getattr(layer.attn, TABLE), (0, 0, 0, 1))
        return table[index].permute(0, 3, 1, 2)


def patch_places(tokens: Tokens) -> Tensor:
    """Return the patch number of each token, from 1, (B or 1, N).

    0 denotes the prefix, and P + 1 tokens without a position.
    """
    none = tokens.num_patches + 1
    places = torch.arange(none, device=tokens.features.device)
    places = F.pad(places[1:], (tokens.num_prefix, 0))[None]
    for record in tokens.trace:
        if isinstance(record, Kept):
            # len() would fix the batch size of an exported model
            rows = places.expand(record.index.size(0), -1)
            places = rows.gather(1, record.index)
            mixed = 0 if record.mix is None else record.mix.size(1)
            places = F.pad(places, (0, mixed), value=none)
        elif isinstance(record, Appended):
            places = F.pad(places, (0, record.num_tokens), value=none)
    return places
