# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from itertools import pairwise

from torch import nn

from mmclca.registry import MODELS

from .hmlp_stem import BATCH_NORM
from .stem import SIDE, Stem, norm_of_maps


@MODELS.register_module()
class ConvStem(Stem):
    """Four convolutions of 3 x 3 with stride 2, as in LeViT.

    The stem that table 7 of `Three things everyone should know about Vision
    Transformers <https://arxiv.org/abs/2203.09795>`_ compares
    :class:`HMLPStem` with. From C / 8 channels on, each convolution doubles
    them; a norm follows each, GELU all but the last. The convolutions have no
    bias and overlap: a token depends on pixels of its neighbours, so that
    this stem does not go with masking. Images of any size are covered
    without padding them to patches. Without norms it is the stem of
    :class:`PatchConvNet`.

    Args:
        embed_dims (int): C, channels of a token. Defaults to 768.
        img_size (int | tuple[int, int]): Height and width of an image in
            pixels. Defaults to 224.
        patch_size (int | tuple[int, int]): 16, nothing else.
        in_channels (int): Channels of an image. Defaults to 3.
        norm_cfg (dict, optional): As in :class:`HMLPStem`; None: no norm.
            Defaults to BatchNorm.
        init_cfg (dict, optional): As in ``BaseModule``. Defaults to None.

    Raises:
        ValueError: See :class:`HMLPStem`.
    """

    def __init__(
        self,
        embed_dims: int = 768,
        img_size: int | tuple[int, int] = 224,
        patch_size: int | tuple[int, int] = SIDE,
        in_channels: int = 3,
        norm_cfg: dict | None = BATCH_NORM,
        init_cfg: dict | None = None,
    ):
        widths = (in_channels, *(embed_dims // part for part in (8, 4, 2, 1)))
        layers = []
        for made_of, width in pairwise(widths):
            conv = nn.Conv2d(made_of, width, 3, 2, padding=1, bias=False)
            if norm_cfg is not None:
                conv = nn.Sequential(conv, norm_of_maps(norm_cfg, width))
            layers += [conv, nn.GELU()]
        projection = nn.Sequential(*layers[:-1])
        super().__init__(projection, img_size, patch_size, init_cfg)
        self.padding = nn.Identity()  # that of the convolutions is enough
