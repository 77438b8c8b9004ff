# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from torch import Tensor, nn
from torch.nn.functional import unfold

from mmclca.registry import MODELS

from .stem import SIDE, Stem, norm_of_maps

BATCH_NORM = dict(type='BN')


@MODELS.register_module()
class HMLPStem(Stem):
    """Hierarchical MLP: patches of 4 x 4, 8 x 8, then 16 x 16 pixels.

    From `Three things everyone should know about Vision Transformers
    <https://arxiv.org/abs/2203.09795>`_, section 5 and figure 5. Each
    convolution is as wide as its stride, so that a token depends on its own
    patch only: masking patches before the stem or after it is the same,
    with the LayerNorm always and with BatchNorm in evaluation; in training
    its statistics are those of all patches.

    ==========================  ==================
    convolution, stride         map, at 224 px
    ==========================  ==================
    4 x 4, norm, GELU           C / 4 x 56 x 56
    2 x 2, norm, GELU           C / 4 x 28 x 28
    2 x 2, norm                 C x 14 x 14
    ==========================  ==================

    Args:
        embed_dims (int): C, channels of a token. Defaults to 768.
        img_size (int | tuple[int, int]): Height and width of an image in
            pixels. Defaults to 224.
        patch_size (int | tuple[int, int]): 16, nothing else.
        in_channels (int): Channels of an image. Defaults to 3.
        norm_cfg (dict): ``dict(type='BN')`` or ``dict(type='LN2d',
            eps=1e-6)``, the LayerNorm over the channels at each place.
            Defaults to BatchNorm.
        init_cfg (dict, optional): As in ``BaseModule``. Defaults to None.

    Raises:
        ValueError: If ``patch_size`` is not 16, or with ``norm_cfg`` of
            LayerNorm over tokens.
    """

    def __init__(
        self,
        embed_dims: int = 768,
        img_size: int | tuple[int, int] = 224,
        patch_size: int | tuple[int, int] = SIDE,
        in_channels: int = 3,
        norm_cfg: dict = BATCH_NORM,
        init_cfg: dict | None = None,
    ):
        width = embed_dims // 4
        projection = nn.Sequential(
            nn.Conv2d(in_channels, width, 4, stride=4),
            norm_of_maps(norm_cfg, width),
            nn.GELU(),
            nn.Conv2d(width, width, 2, stride=2),
            norm_of_maps(norm_cfg, width),
            nn.GELU(),
            nn.Conv2d(width, embed_dims, 2, stride=2),
            norm_of_maps(norm_cfg, embed_dims),
        )
        super().__init__(projection, img_size, patch_size, init_cfg)

    def visible(self, x: Tensor, index: Tensor) -> Tensor:
        """Tokens of some patches, at the cost of these.

        Those that ``forward`` makes, gathered; in training BatchNorm sees
        the visible patches only.

        Args:
            x (Tensor): Images (B, 3, H, W).
            index (Tensor): Patches of each image (B, K), row by row from 0.

        Returns:
            Tensor: Tokens (B, K, C).
        """
        patches = unfold(self.padding(x), SIDE, stride=SIDE)
        index = index[:, None].expand(-1, patches.size(1), -1)
        patches = patches.gather(2, index).unflatten(1, (-1, SIDE, SIDE))
        # side by side: images of one row of patches, (B, 3, 16, 16 K)
        return self(patches.transpose(-1, -2).flatten(-2))[0]
