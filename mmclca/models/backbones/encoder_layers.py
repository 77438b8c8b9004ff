# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Callable

from torch import Tensor, nn

from ..reduction.attention import Attended, attend
from ..reduction.tokens import Tokens


class EncoderLayers:
    """Mixin over :class:`Reducible`: its layers are those of a ViT.

    mmpretrain's ``TransformerEncoderLayer``, or what has the same parts:
    ``ln1``, ``attn``, ``ln2`` and ``ffn``.
    """

    def normalize(self, layer: nn.Module, x: Tensor) -> Tensor:
        """See :class:`Reducible`."""
        return layer.ln1(x)

    def attend(
        self,
        layer: nn.Module,
        tokens: Tokens,
        key_bias: Tensor | None,
        softmax: Callable | None,
    ) -> tuple[Tensor, Attended]:
        """See :class:`Reducible`."""
        x = self.normalize(layer, tokens.x)
        update, attended = attend(layer.attn, x, key_bias, softmax)
        return tokens.x + update, attended

    def feed(self, layer: nn.Module, x: Tensor) -> Tensor:
        """See :class:`Reducible`."""
        return layer.ffn(layer.ln2(x), identity=x)
