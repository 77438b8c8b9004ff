# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch.nn.functional as F
from torch import Tensor

from mmclca.registry import MODELS

from ..tokens import Tokens
from ..trace import Kept
from .topk import TopK


def fuse_weights(score: Tensor, index: Tensor, num_prefix: int = 1) -> Tensor:
    """Weigh the tokens that are not kept by their scores, for the fused one.

    Args:
        score (Tensor): Attention of CLS to the tokens after the prefix,
            (B, N - num_prefix).
        index (Tensor): The tokens kept, prefix included,
            (B, num_prefix + K).
        num_prefix (int): Tokens of the prefix. Defaults to 1, CLS.

    Returns:
        Tensor: (B, 1, N), zero for the prefix and for the kept tokens.
    """
    weights = F.pad(score, (num_prefix, 0)).scatter(1, index, 0.0)
    return weights.unsqueeze(1)


@MODELS.register_module()
class EViT(TopK):
    """Keeps the tokens that CLS attends to most, fuses the others into one.

    `Not All Patches are What You Need: Expediting Vision Transformers via
    Token Reorganizations`, section 3.2. As :class:`TopK`, and the sum of the
    dropped tokens, weighted with the attention of CLS, follows the kept ones:
    [prefix | kept | fused].

    Args:
        *counts: ``keep_rate`` and ``num_tokens`` of :class:`TopK`; the fused
            token comes on top.
        normalize (bool): Whether the weights of a fused token are divided by
            their sum, so that it is an average. Defaults to False: they sum
            to the attention that CLS gives to the dropped tokens, as in the
            CLCA authors' models.
        **backbone: See :class:`CountedReducer`.
    """

    summary = 'keep the most important patches, fuse the rest into one'

    def __init__(self, *counts, normalize: bool = False, **backbone):
        super().__init__(*counts, **backbone)
        self.normalize = normalize

    def drop(self, tokens: Tokens, score: Tensor, index: Tensor) -> Tokens:
        """Reduce to the tokens at ``index`` and one fused of the others."""
        mix = fuse_weights(score, index, tokens.num_prefix)
        if self.normalize:
            mix = F.normalize(mix, p=1, dim=-1)
        return tokens.reduce(Kept(index, mix))
