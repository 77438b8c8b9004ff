# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""timm's ``VisionTransformer`` with token reduction."""

from collections.abc import Callable

from timm.models import vision_transformer as vit
from timm.models.deit import VisionTransformerDistilled
from torch import Tensor, nn

from ..reduction.reducers.base import RotarySettings
from ..reduction.tokens import Tokens
from .calls import call, same_shape
from .timm_model import ReducedTimm


class ReducedViT(ReducedTimm, vit.VisionTransformer):
    """timm's ``VisionTransformer`` with token reduction.

    Made by :func:`reduce_tokens`.
    """

    timm_class = vit.VisionTransformer
    has_cls = property(lambda self: self.has_class_token)

    def delegates(self) -> list[nn.Module]:
        """See :class:`ReducedModel`."""
        parts = [self.blocks, *super().delegates()]
        for block in self.blocks:
            if isinstance(block, vit.ParallelThingsBlock):
                parts += block.attns
        return parts

    def run_layers(self, tokens: Tokens, observe: Callable) -> Tokens:
        """Call ``blocks`` as a module, so that its hooks run."""
        run = super().run_layers

        def function(blocks, x):
            x = same_shape(tokens.features, x, blocks)
            left = run(tokens.with_features(x), observe)
            return left.features, left

        x, left = call(self.blocks, tokens.features, function)
        return left.with_features(same_shape(left.features, x, self.blocks))

    def add_positions(
        self, x: Tensor, hw: tuple[int, int], settings: RotarySettings
    ) -> Tokens:
        """See :class:`ReducedTimm`."""
        x = self.patch_drop(self._pos_embed(x))
        num_patches = x.size(1) - self.num_prefix
        return Tokens(x, num_prefix=self.num_prefix, num_patches=num_patches)


class ReducedDistilledViT(ReducedViT, VisionTransformerDistilled):
    """timm's ``VisionTransformerDistilled`` with token reduction."""

    is_distilled = True
