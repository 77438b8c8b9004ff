# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from mmcv.cnn.bricks import DropPath
from mmengine.model import BaseModule
from mmpretrain.models.utils import LayerScale, SELayer, build_norm_layer
from torch import Tensor, nn

from mmclca.utils.known_names import not_one_of

NORMS = dict(LN='LN2d', BN='BN', SyncBN='SyncBN')  # of tokens, of maps


class ColumnLayer(BaseModule):
    r"""A residual layer of convolutions that keeps the size of its map.

    .. math::
        x' = x + \gamma \, f(\mathrm{norm}(x))

    where f is a convolution of 1 x 1, GELU, a depth-wise one of 3 x 3, GELU,
    squeeze and excitation with round(C / 4) channels, and a convolution of
    1 x 1. Source: Touvron's thesis (2022), section 5.2.1; that the one of
    3 x 3 is depth-wise and what is squeezed are those of the public code.
    Convolutions keep PyTorch's initialization.

    Raises:
        ValueError: If the norm is neither LayerNorm nor BatchNorm.
    """

    def __init__(
        self,
        embed_dims: int,
        norm_cfg: dict,
        layer_scale_init_value: float,
        drop_path_rate: float,
    ):
        super().__init__()
        self.norm = _norm_of_maps(norm_cfg, embed_dims)
        self.conv1 = nn.Conv2d(embed_dims, embed_dims, 1)
        self.depthwise = nn.Conv2d(
            embed_dims, embed_dims, 3, padding=1, groups=embed_dims
        )
        self.se = SELayer(embed_dims, squeeze_channels=round(embed_dims / 4))
        self.conv2 = nn.Conv2d(embed_dims, embed_dims, 1)
        self.gamma = nn.Identity()
        if layer_scale_init_value:
            self.gamma = LayerScale(
                embed_dims,
                layer_scale_init_value,
                data_format='channels_first',
            )
        self.gelu = nn.GELU()
        self.drop_path = DropPath(drop_path_rate)
        self._draw_as_torch_does()

    def _draw_as_torch_does(self) -> None:
        """mmcv draws its convolutions otherwise, when built and later."""
        for squeeze in (self.se.conv1, self.se.conv2):
            squeeze.conv.reset_parameters()
        self.se.is_init = True

    def forward(self, x: Tensor) -> Tensor:
        """A map (B, C, H, W) to one of the same size."""
        update = self.gelu(self.conv1(self.norm(x)))
        update = self.se(self.gelu(self.depthwise(update)))
        return x + self.drop_path(self.gamma(self.conv2(update)))


def _norm_of_maps(norm_cfg: dict, channels: int) -> nn.Module:
    kind = norm_cfg['type']
    if kind not in NORMS:
        raise ValueError(f'norm_cfg: {not_one_of(kind, NORMS)}')
    return build_norm_layer(dict(norm_cfg, type=NORMS[kind]), channels)
