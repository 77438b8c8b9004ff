# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""How the patches of ResMLP communicate: what stands in for attention."""

from math import prod

import torch
from mmcv.cnn.bricks.transformer import FFN
from torch import Tensor, nn

from mmclca.utils.known_names import not_one_of


class PatchLinear(nn.Linear):
    """A linear layer from N to M patches, the same for all channels.

    One product an image: nothing is transposed, neither here nor in what
    follows.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Tokens (B, N, C) to tokens (B, M, C)."""
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
        """Tokens (B, N, C) to tokens (B, N, C)."""
        return super().forward(x.mT).mT


class GridConvs(nn.Sequential):
    """Convolutions over the grid of patches."""

    def __init__(self, grid: tuple[int, int], *convs: nn.Conv2d):
        super().__init__(*convs)
        self.grid = grid

    def forward(self, x: Tensor) -> Tensor:
        """Tokens (B, N, C) to tokens (B, N, C)."""
        x = x.mT.unflatten(2, self.grid)
        return super().forward(x).flatten(2).mT


def _linear(channels: int, grid: tuple[int, int]) -> nn.Module:
    return PatchLinear(prod(grid), prod(grid))


def _none(channels: int, grid: tuple[int, int]) -> nn.Module:
    return nn.Identity()


def _mlp(channels: int, grid: tuple[int, int]) -> nn.Module:
    return PatchMLP(prod(grid))


def _conv(channels: int, grid: tuple[int, int]) -> nn.Module:
    return GridConvs(grid, nn.Conv2d(channels, channels, 3, padding=1))


def _depthwise(channels: int, grid: tuple[int, int]) -> GridConvs:
    conv = nn.Conv2d(channels, channels, 3, padding=1, groups=channels)
    return GridConvs(grid, conv)


def _separable(channels: int, grid: tuple[int, int]) -> nn.Module:
    return _depthwise(channels, grid).append(nn.Conv2d(channels, channels, 1))


COMMUNICATIONS = dict(
    linear=_linear,
    none=_none,
    mlp=_mlp,
    conv=_conv,
    depthwise=_depthwise,
    separable=_separable,
)


def build_communication(
    kind: str, channels: int, grid: tuple[int, int]
) -> nn.Module:
    """Build what lets the patches of a layer communicate.

    Source: Touvron's thesis (2022), section 4.2 and its ablation of ResMLP.

    Returns:
        nn.Module: From tokens (B, N, C) to tokens (B, N, C).

    Raises:
        ValueError: If there is no such kind.
    """
    if kind not in COMMUNICATIONS:
        raise ValueError(f'communication: {not_one_of(kind, COMMUNICATIONS)}')
    return COMMUNICATIONS[kind](channels, grid)


class FoldedMixing(nn.Module):
    r"""A linear layer across patches with the affine maps around it.

    The factors of a channel commute with the layer, which all channels share,
    but cannot be a part of it; what is left of the shifts is one for a patch
    and a channel:

    .. math::
        \gamma \odot (A (\alpha \odot x + \beta) + a) + \beta' =
        \gamma \odot \alpha \odot A x +
        \gamma \odot (A \beta + a) + \beta'

    Args:
        mix (PatchLinear): :math:`A`, (M, N), and :math:`a`, (M,).
        before (tuple[Tensor, Tensor]): :math:`\alpha` and :math:`\beta`,
            (C,).
        after (tuple[Tensor, Tensor]): :math:`\gamma` and :math:`\beta'`,
            (C,).
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
        """Tokens (B, N, C) to tokens (B, M, C)."""
        mixed = self.weight.expand(x.size(0), -1, -1).bmm(x)
        return torch.addcmul(self.shift, mixed, self.scale)
