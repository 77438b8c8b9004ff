# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Layers of ResMLP: affine maps, token mixers, FFNs."""

from copy import deepcopy
from math import prod

import torch
from mmcv.cnn.bricks import DropPath
from mmcv.cnn.bricks.transformer import FFN
from mmengine.model import BaseModule
from mmpretrain.models.utils import LayerScale, build_norm_layer
from torch import Tensor, nn

from mmclca.errors import Error
from mmclca.registry import MODELS


@MODELS.register_module()
class Affine(nn.Module):
    r"""A factor and a shift per channel, :math:`\alpha \odot x + \beta`.

    ResMLP's replacement for norms: it uses no statistics of batches or tokens.
    Available as a ``norm_cfg`` for tokens.

    Source: Touvron's thesis (2022), equation 4.1.

    Args:
        num_features (int): Channels, C.
        eps (float): Unused; mmpretrain passes it to every norm. Defaults to
            0.0.
        alpha (float): Initial value of the factors. Defaults to 1.0, the
            identity.
    """

    def __init__(
        self, num_features: int, eps: float = 0.0, alpha: float = 1.0
    ):
        super().__init__()
        self.alpha = nn.Parameter(torch.full((num_features,), alpha))
        self.beta = nn.Parameter(torch.zeros(num_features))

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., C) to the same shape."""
        return torch.addcmul(self.beta, x, self.alpha)


def split_affine(part: nn.Module) -> tuple[nn.Module, Tensor, Tensor]:
    """Split a norm or scale into a parameter-free module, factors and shifts.

    Factors and shifts, (C,), apply after the module.
    """
    if isinstance(part, Affine):
        return nn.Identity(), part.alpha, part.beta
    if isinstance(part, LayerScale):
        return nn.Identity(), part.weight, torch.zeros_like(part.weight)
    if not isinstance(part, nn.LayerNorm):
        raise TypeError(f'{type(part).__name__} is not an affine map or norm')
    shape = part.normalized_shape
    bare = nn.LayerNorm(shape, part.eps, elementwise_affine=False)
    return bare.train(part.training), part.weight, part.bias


class PatchLinear(nn.Linear):
    """A linear layer from N to M patches, shared by all channels.

    One batched product, without transposing tokens.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Map tokens (B, N, C) to (B, M, C)."""
        weight = self.weight.expand(x.size(0), -1, -1)
        return torch.baddbmm(self.bias[:, None], weight, x)


class PatchMLP(FFN):
    """Two linear layers across patches, with GELU between them."""

    def __init__(self, num_patches: int):
        gelu = dict(type='GELU')
        super().__init__(
            num_patches, 4 * num_patches, act_cfg=gelu, add_identity=False
        )

    def forward(self, x: Tensor) -> Tensor:
        """Map tokens (B, N, C) to tokens (B, N, C)."""
        return super().forward(x.mT).mT


class GridConvs(nn.Sequential):
    """Convolutions over the patch grid."""

    def __init__(self, grid: tuple[int, int], *convs: nn.Conv2d):
        super().__init__(*convs)
        self.grid = grid

    def forward(self, x: Tensor) -> Tensor:
        """Map tokens (B, N, C) to tokens (B, N, C)."""
        x = x.mT.unflatten(2, self.grid)
        return super().forward(x).flatten(2).mT


def _conv(channels: int, groups: int = 1) -> nn.Conv2d:
    return nn.Conv2d(channels, channels, 3, padding=1, groups=groups)


# token mixers: layers across patches, tokens (B, N, C) to tokens, for
# channels and grid. Source: Touvron's thesis (2022), section 4.2 and its
# ablation of ResMLP
TOKEN_MIXERS = dict(
    linear=lambda dims, grid: PatchLinear(prod(grid), prod(grid)),
    none=lambda dims, grid: nn.Identity(),
    mlp=lambda dims, grid: PatchMLP(prod(grid)),
    conv=lambda dims, grid: GridConvs(grid, _conv(dims)),
    depthwise=lambda dims, grid: GridConvs(grid, _conv(dims, groups=dims)),
    separable=lambda dims, grid: GridConvs(
        grid, _conv(dims, groups=dims), nn.Conv2d(dims, dims, 1)
    ),
)


class FoldedMixing(nn.Module):
    r"""A linear layer across patches, with the surrounding affine maps folded.

    The channel factors commute with the layer, which all channels share, but
    cannot be merged into its weights. The shifts reduce to one value per patch
    and channel:

    .. math::
        \gamma \odot (A (\alpha \odot x + \beta) + a) + \beta' =
        \gamma \odot \alpha \odot A x +
        \gamma \odot (A \beta + a) + \beta'

    ``mix`` holds :math:`A` (M, N) and :math:`a` (M,), ``before``
    :math:`\alpha` and :math:`\beta` (C,), and ``after`` :math:`\gamma` and
    :math:`\beta'` (C,).
    """

    def __init__(
        self,
        mix: PatchLinear,
        before: tuple[Tensor, Tensor],
        after: tuple[Tensor, Tensor],
    ):
        super().__init__()
        (alpha, beta), (gamma, shift) = before, after
        rows = mix.weight.sum(dim=1, keepdim=True) * beta
        self.scale = nn.Parameter(gamma * alpha)
        self.shift = nn.Parameter(gamma * (rows + mix.bias[:, None]) + shift)
        self.weight = mix.weight

    def forward(self, x: Tensor) -> Tensor:
        """Map tokens (B, N, C) to (B, M, C)."""
        mixed = self.weight.expand(x.size(0), -1, -1).bmm(x)
        return torch.addcmul(self.shift, mixed, self.scale)


class ResMLPLayer(BaseModule):
    r"""A token mixer, then an FFN, each with a residual.

    .. math::
        d &= x + \gamma_1 \odot A \, \mathrm{Aff}_1(x) \\
        y &= d + \gamma_2 \odot C \, \mathrm{GELU}(B \, \mathrm{Aff}_2(d))

    Source: Touvron's thesis (2022), equations 4.2 and 4.3. The affine maps
    after the branches have factors only, in agreement with the thesis'
    parameter counts; ``with_post_beta`` adds the shifts.
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
        for scale_layer in scales:
            nn.init.constant_(
                split_affine(scale_layer)[1], layer_scale_init_value
            )
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
        self.ffn.gamma2 = gamma2  # FFN builds none for a zero value

    def forward(self, x: Tensor) -> Tensor:
        """Map tokens (B, N, C) to tokens (B, N, C)."""
        return self.ffn_block(x + self.mix_patches(x))

    def mix_patches(self, x: Tensor) -> Tensor:
        """Compute the update of the first branch, across patches."""
        return self.drop_path(self.gamma1(self.mix(self.norm1(x))))

    def ffn_block(self, x: Tensor) -> Tensor:
        """Run the second branch with its residual, token by token."""
        return self.ffn(self.norm2(x), identity=x)

    @torch.no_grad()
    def fused(self) -> 'ResMLPLayer':
        """Return a copy with the affine maps folded into linear layers.

        The FFN absorbs its affine maps. Around a linear layer across patches,
        they become a factor per channel and a shift per patch and channel, see
        :class:`FoldedMixing`. Around other token mixers they remain, because
        GELU or the border of a convolution intervenes.
        """
        layer = deepcopy(self)
        if isinstance(layer.ffn.gamma2, nn.Identity):  # fused before
            return layer
        if isinstance(layer.mix, PatchLinear):
            layer.norm1, alpha, beta = split_affine(layer.norm1)
            _, gamma, shift = split_affine(layer.gamma1)
            layer.mix = FoldedMixing(
                layer.mix, before=(alpha, beta), after=(gamma, shift)
            )
            layer.gamma1 = nn.Identity()
        layer.norm2, alpha, beta = split_affine(layer.norm2)
        fold_into(layer.ffn, alpha, beta)
        return layer


class ClassMLPLayer(ResMLPLayer):
    """A class token aggregates patches, which do not change.

    CaiT's class attention with a linear layer, from class token and patches
    to the class token, instead of attention.

    Source: Touvron's thesis (2022), section 4.2.
    """

    def forward(self, cls: Tensor, patches: Tensor) -> Tensor:
        """Update the class token (B, 1, C) from patches (B, N, C)."""
        x = torch.cat((cls, patches), dim=1)
        return self.ffn_block(cls + self.mix_patches(x))


def build_affine(norm_cfg: dict, channels: int) -> nn.Module:
    """Build a norm with an affine map that can be folded.

    Only :class:`Affine` and LayerNorm are supported.
    """
    norm = build_norm_layer(norm_cfg, channels)
    if not isinstance(norm, Affine | nn.LayerNorm):
        raise Error(
            f'norm_cfg={norm_cfg!r} is not supported in ResMLP; use '
            "dict(type='mmclca.Affine') or dict(type='LN', eps=1e-6)"
        )
    return norm


def fold_into(ffn: FFN, alpha: Tensor, beta: Tensor) -> None:
    """Fold the affine map before an FFN, and its LayerScale, in place."""
    first, last = ffn.layers[0][0], ffn.layers[1]
    _, gamma, shift = split_affine(ffn.gamma2)
    first.bias += first.weight @ beta
    first.weight *= alpha
    last.weight *= gamma[:, None]
    last.bias.mul_(gamma).add_(shift)
    ffn.gamma2 = nn.Identity()
