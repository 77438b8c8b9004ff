# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""FFVT: tokens of all layers meet in the last block."""

from torch import Tensor

from mmclca.registry import MODELS
from mmclca.utils.messages import integer

from ..reduction.attention import Attended
from ..reduction.trace import Kept
from .vit import BaselineViT


def mutual_attention(attended: Attended) -> Tensor:
    """Rate all tokens by what CLS pays them and what they pay CLS, (B, N).

    The mutual attention of `FFVT`: the softmax of CLS over all keys times
    that of the key of CLS over all queries, each a mean over heads. One row
    and one column, O(N).
    """
    column = Attended(attended.k, attended.q, attended.v)
    return attended.cls_attn().mean(dim=1) * column.cls_attn().mean(dim=1)


@MODELS.register_module()
class FFVT(BaselineViT):
    """Feature fusion vision transformer: tokens chosen in every layer.

    `Feature Fusion Vision Transformer for Fine-Grained Visual Categorization
    <https://arxiv.org/abs/2107.02341>`_. The last block reads CLS and
    ``num_tokens`` tokens that leave each layer before it. CLS may be among
    them, as in the public code.

    Args:
        num_tokens (int): Tokens chosen in a layer. Defaults to 12.
        **vit: The arguments of :class:`BaselineViT`.

    Raises:
        ValueError: See :class:`BaselineViT`; if there are fewer patches than
            ``num_tokens``.
    """

    def __init__(self, *args, num_tokens: int = 12, **vit):
        integer(num_tokens=num_tokens)
        # before the grid is checked
        self.num_parts = self.num_tokens = num_tokens
        super().__init__(*args, **vit)

    def forward(self, x: Tensor) -> tuple[Tensor]:
        """Map images (B, 3, H, W) to CLS of the last block, (B, C)."""
        x, chosen = self.start(x), []
        for layer in self.layers:
            x, attended = self.run_layer(layer, x)
            index = mutual_attention(attended).topk(self.num_tokens).indices
            chosen.append(Kept(index).apply(x))
        return self.read_last(x[:, :1], *chosen)
