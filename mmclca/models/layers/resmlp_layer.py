# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from copy import deepcopy

import torch
from mmcv.cnn.bricks import DropPath
from mmcv.cnn.bricks.transformer import FFN
from mmengine.model import BaseModule
from mmpretrain.models.utils import LayerScale, build_norm_layer
from torch import Tensor, nn

from .affine import Affine, split_affine
from .patch_mixing import FoldedMixing, PatchLinear


class ResMLPLayer(BaseModule):
    r"""Communication of patches, then an FFN, each with a residual.

    .. math::
        d &= x + \gamma_1 \odot A \, \mathrm{Aff}_1(x) \\
        y &= d + \gamma_2 \odot C \, \mathrm{GELU}(B \, \mathrm{Aff}_2(d))

    Source: Touvron's thesis (2022), equations 4.2 and 4.3; of the affine maps
    after the branches there are only the factors, as the counts there say.

    Args:
        embed_dims (int): Channels C; 4C in the FFN.
        mix (nn.Module): What lets patches communicate, tokens (B, N, C) to
            tokens (B, N, C).
        norm_cfg (dict): Config of what precedes each branch, :class:`Affine`
            or LayerNorm.
        layer_scale_init_value (float): Initial value of the factors after
            the branches.
        drop_path_rate (float): That of stochastic depth. Defaults to 0.0.
        with_post_beta (bool): Whether there are shifts after the branches,
            too. Defaults to False.

    Raises:
        ValueError: If the norm is neither of these.
    """

    def __init__(
        self,
        embed_dims: int,
        mix: nn.Module,
        norm_cfg: dict,
        layer_scale_init_value: float,
        drop_path_rate: float = 0.0,
        with_post_beta: bool = False,
    ):
        super().__init__()
        scale = Affine if with_post_beta else LayerScale
        scales = [scale(embed_dims) for _ in range(2)]
        for one in scales:
            nn.init.constant_(split_affine(one)[1], layer_scale_init_value)
        self.norm1 = build_affine(norm_cfg, embed_dims)
        self.mix = mix
        self.gamma1, gamma2 = scales
        self.drop_path = DropPath(drop_path_rate)
        self.norm2 = build_affine(norm_cfg, embed_dims)
        self.ffn = FFN(
            embed_dims,
            4 * embed_dims,
            act_cfg=dict(type='GELU'),
            dropout_layer=dict(type='DropPath', drop_prob=drop_path_rate),
        )
        self.ffn.gamma2 = gamma2  # FFN alone has none where it is zero

    def forward(self, x: Tensor) -> Tensor:
        """Tokens (B, N, C) to tokens (B, N, C)."""
        return self.feed(x + self.communicate(x))

    def communicate(self, x: Tensor) -> Tensor:
        """First branch, what patches tell each other: tokens to tokens."""
        return self.drop_path(self.gamma1(self.mix(self.norm1(x))))

    def feed(self, x: Tensor) -> Tensor:
        """Second half, of single tokens (B, N, C)."""
        return self.ffn(self.norm2(x), identity=x)

    @torch.no_grad()
    def fused(self) -> 'ResMLPLayer':
        """The same layer with its affine maps in the linear layers; a copy.

        Those of the FFN are gone, and those around a linear layer across
        patches become a factor a channel and a shift a patch and channel,
        see :class:`FoldedMixing`. Around other communication they stay:
        GELU, or the border of a convolution, comes in between.
        """
        layer = deepcopy(self)
        if isinstance(layer.ffn.gamma2, nn.Identity):  # fused before
            return layer
        if isinstance(layer.mix, PatchLinear):
            layer.norm1, *before = split_affine(layer.norm1)
            _, *after = split_affine(layer.gamma1)
            layer.mix = FoldedMixing(layer.mix, before, after)
            layer.gamma1 = nn.Identity()
        layer.norm2, *before = split_affine(layer.norm2)
        fold_into(layer.ffn, *before)
        return layer


class ClassMLPLayer(ResMLPLayer):
    """A class token reads the patches, which stay as they are.

    CaiT's class attention with a linear layer, from class token and patches
    to the class token, in the place of attention.

    Source: Touvron's thesis (2022), section 4.2.
    """

    def forward(self, cls: Tensor, patches: Tensor) -> Tensor:
        """The class token (B, 1, C) after it read patches (B, N, C)."""
        x = torch.cat((cls, patches), dim=1)
        return self.feed(cls + self.communicate(x))


def build_affine(norm_cfg: dict, channels: int) -> nn.Module:
    """Build a norm whose affine map can be folded.

    Raises:
        ValueError: If it is neither :class:`Affine` nor LayerNorm.
    """
    norm = build_norm_layer(norm_cfg, channels)
    if not isinstance(norm, Affine | nn.LayerNorm):
        raise ValueError(
            f'norm_cfg={norm_cfg!r} is not allowed in ResMLP: give '
            "dict(type='mmclca.Affine') or dict(type='LN', eps=1e-6)"
        )
    return norm


def fold_into(ffn: FFN, alpha: Tensor, beta: Tensor) -> None:
    """Fold the factors and shifts before an FFN, and its scale, in place."""
    first, last = ffn.layers[0][0], ffn.layers[1]
    _, gamma, shift = split_affine(ffn.gamma2)
    first.bias += first.weight @ beta
    first.weight *= alpha
    last.weight *= gamma[:, None]
    last.bias.mul_(gamma).add_(shift)
    ffn.gamma2 = nn.Identity()
