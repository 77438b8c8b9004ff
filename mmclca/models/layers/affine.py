# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""ResMLP's map of single channels, and what such maps come to."""

import torch
from mmpretrain.models.utils import LayerScale
from torch import Tensor, nn

from mmclca.registry import MODELS


@MODELS.register_module()
class Affine(nn.Module):
    r"""A factor and a shift a channel, :math:`\alpha \odot x + \beta`.

    What ResMLP has in place of a norm: nothing is taken from a batch or from
    tokens. It goes where mmpretrain takes a ``norm_cfg``, of tokens.

    Source: Touvron's thesis (2022), equation 4.1.

    Args:
        num_features (int): Channels, C.
        eps (float): Not used; mmpretrain builds every norm with one.
            Defaults to 0.0.
        alpha (float): Initial value of the factors. Defaults to 1.0, with
            which it gives what it takes.
    """

    def __init__(
        self, num_features: int, eps: float = 0.0, alpha: float = 1.0
    ):
        super().__init__()
        self.alpha = nn.Parameter(torch.full((num_features,), alpha))
        self.beta = nn.Parameter(torch.zeros(num_features))

    def forward(self, x: Tensor) -> Tensor:
        """(..., C) to the same shape."""
        return torch.addcmul(self.beta, x, self.alpha)


def split_affine(part: nn.Module) -> tuple[nn.Module, Tensor, Tensor]:
    """What a norm or a scale does before its affine map, and that map.

    Returns:
        tuple[nn.Module, Tensor, Tensor]: A module without parameters, and
        the factors and shifts of what follows it, (C,).
    """
    if isinstance(part, Affine):
        return nn.Identity(), part.alpha, part.beta
    if isinstance(part, LayerScale):
        return nn.Identity(), part.weight, torch.zeros_like(part.weight)
    bare = nn.LayerNorm(
        part.normalized_shape, part.eps, elementwise_affine=False
    )
    return bare, part.weight, part.bias
