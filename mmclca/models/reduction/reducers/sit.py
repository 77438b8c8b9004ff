# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mmclca.errors import Error
from mmclca.registry import MODELS

from ..tokens import Tokens
from .base import VIT_BASE, BackboneShape, init_linear
from .counted import CountedReducer


class Slimming(nn.Module):
    """Weights that sum tokens to a fixed number of new tokens.

    `Self-slimmed Vision Transformer`, section 3.2, equations 3 and 4.
    """

    def __init__(self, embed_dims: int, num_tokens: int):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1, 1, 1))
        self.weight = nn.Sequential(
            nn.LayerNorm(embed_dims),
            nn.Linear(embed_dims, embed_dims // 2),
            nn.GELU(),
            nn.Linear(embed_dims // 2, num_tokens),
        )
        init_linear(self)

    def forward(self, y: Tensor) -> Tensor:
        """Map tokens (B, N, C) to weights (B, M, N), with sum 1 over N."""
        return (self.weight(y) * self.scale).softmax(dim=1).transpose(1, 2)


@MODELS.register_module()
class SiT(CountedReducer):
    """Sum all tokens after the prefix to a fixed number of tokens.

    `Self-slimmed Vision Transformer`, section 3.2: a small network predicts
    the weight of each token in each new one. CLR and recovered tokens are
    summed with the patches.

    Args:
        keep_rate (float | Sequence[float], optional): See
            :class:`CountedReducer`.
        num_tokens (Sequence[int], optional): See :class:`CountedReducer`.
        recalibrate (bool): Whether token distillation compares the teacher's
            patches with patches that a reverse slimming module predicts from
            the final tokens (feature recalibration distillation, section 3.3
            of the paper); needs a classifier with a ``teacher``. Defaults to
            False.
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
        recalibrate: bool = False,
        backbone: BackboneShape = VIT_BASE,
        init_cfg: dict | None = None,
    ):
        super().__init__(
            keep_rate, num_tokens, backbone=backbone, init_cfg=init_cfg
        )
        self.stages = nn.ModuleList(
            Slimming(self.embed_dims, self.count_patches(stage))
            for stage in range(self.num_stages)
        )
        self.needs_teacher = recalibrate
        self.reverse = None
        if recalibrate:
            self.reverse = Slimming(self.embed_dims, self.num_patches)

    def before_layer(self, tokens: Tokens, stage: int) -> Tokens:
        mix = self.stages[stage](tokens.after_prefix)
        return tokens.mix_after_prefix(mix)

    def token_loss(self, tokens: Tokens, teacher: Tensor) -> Tensor:
        """See :class:`TokenReducer`."""
        if self.reverse is None:
            return super().token_loss(tokens, teacher)
        if teacher.size(1) != self.num_patches:
            raise Error(
                f'SiT(recalibrate=True) needs {self.num_patches} patches, '
                f'found {teacher.size(1)}; resize images to img_size'
            )
        y = tokens.after_prefix
        return F.mse_loss(self.reverse(y) @ y, teacher)
