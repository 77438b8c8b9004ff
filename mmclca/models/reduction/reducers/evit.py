# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor

from mmclca.registry import MODELS

from ..tokens import Tokens
from ..trace import Kept
from .base import VIT_BASE, BackboneShape
from .topk import TopK


@MODELS.register_module()
class EViT(TopK):
    """Keep the tokens with most CLS attention, merge the rest into one.

    `Not All Patches are What You Need: Expediting Vision Transformers via
    Token Reorganizations`, section 3.2. As :class:`TopK`, but the sum of the
    dropped tokens, weighted by CLS attention, follows the kept ones: [prefix |
    kept | fused].

    Args:
        keep_rate (float | Sequence[float], optional): See
            :class:`TopK`.
        num_tokens (Sequence[int], optional): See :class:`TopK`; the fused
            token is extra.
        normalize (bool): Whether the weights of the fused token are divided by
            their sum, for an average. Defaults to False, as in the CLCA
            authors' models: they sum to the CLS attention of the dropped
            tokens.
        backbone (BackboneShape): See :class:`CountedReducer`.
        init_cfg (dict, optional): See :class:`CountedReducer`.
    """

    summary = 'keep the most important patches, merge the rest into one'

    def __init__(
        self,
        keep_rate: float | Sequence[float] | None = None,
        num_tokens: Sequence[int] | None = None,
        *,
        normalize: bool = False,
        backbone: BackboneShape = VIT_BASE,
        init_cfg: dict | None = None,
    ):
        super().__init__(
            keep_rate, num_tokens, backbone=backbone, init_cfg=init_cfg
        )
        self.normalize = normalize

    def drop(self, tokens: Tokens, score: Tensor, index: Tensor) -> Tokens:
        """Reduce to the tokens at ``index`` and a fusion of the rest."""
        mix = F.pad(score, (tokens.num_prefix, 0)).scatter(1, index, 0.0)
        if self.normalize:
            mix = F.normalize(mix, p=1, dim=-1)
        return tokens.reduce(Kept(index, mix.unsqueeze(1)))
