# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""timm's ``Eva`` with token reduction: DINOv3, EVA-02 and others."""

from timm.models.eva import Eva
from torch import Tensor

from mmclca.errors import Error

from ..reduction.reducers.base import RotarySettings
from ..reduction.rotary import Rotary
from ..reduction.tokens import Tokens
from .rotary_angles import find_angles
from .timm_layers import find_attention
from .timm_model import ReducedTimm


class ReducedEva(ReducedTimm, Eva):
    """timm's ``Eva`` with token reduction.

    Made by :func:`reduce_tokens`. The rotary positions of the patches are in
    ``Tokens.rotary``.
    """

    timm_class = Eva
    has_cls = property(lambda self: self.cls_token is not None)

    def check_reducer(self, reducer) -> None:
        """See :class:`Reducible`."""
        super().check_reducer(reducer)
        needs_all = reducer.rotary.merged_position == 'mean'
        if needs_all and self.patch_drop is not None:
            raise Error(
                "merged_position='mean' needs all patches, but "
                'patch_drop_rate drops some in training; use '
                "merged_position='largest'"
            )

    def before_layer(self, i: int, tokens: Tokens) -> Tokens:
        """See :class:`Reducible`; layers may have their own rotations."""
        if tokens.rotary is None or not self.rope_mixed:
            return tokens
        return tokens.replace(rotary=tokens.rotary.at_layer(i))

    def add_positions(
        self, x: Tensor, hw: tuple[int, int], settings: RotarySettings
    ) -> Tokens:
        """See :class:`ReducedTimm`."""
        x, rows = self._pos_embed(x)
        return Tokens(
            x,
            num_prefix=self.num_prefix,
            num_patches=x.size(1) - self.num_prefix,
            rotary=None if rows is None else self._rotary(rows, hw, settings),
        )

    def _rotary(
        self, rows: Tensor, hw: tuple[int, int], settings: RotarySettings
    ) -> Rotary:
        """Return the rotations for all tokens.

        Args:
            rows (Tensor): Sine and cosine of the patches, in the shapes of
                timm.
            hw (tuple[int, int]): Height and width of the patch grid.
            settings (RotarySettings): Settings of the reducer.
        """
        attn = find_attention(next(iter(self.blocks)).attn)
        half = attn.rotate_half
        if settings.merged_position == 'mean':
            angles = find_angles(self.rope, hw)
            return Rotary.with_coordinates(
                angles.places,
                angles.frequencies,
                self.num_prefix,
                half,
                settings.keys,
            )
        if rows.dim() == 2:
            rows = rows[None, None]  # of all layers and heads
        elif not self.rope_mixed:
            rows = rows[None]  # (B, 1, P, 2 D) with patch_drop_rate
        return Rotary.with_rows(rows, self.num_prefix, half, settings.keys)
