# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from mmpretrain.models.selfsup import BEiTPretrainViT
from torch import Tensor

from mmclca.registry import MODELS

from ..stems import build_stem


@MODELS.register_module()
class StemBEiTViT(BEiTPretrainViT):
    """mmpretrain's ``BEiTPretrainViT`` with a stem of its own.

    The mask token takes the place of what the stem makes of a patch. From
    `Three things everyone should know about Vision Transformers
    <https://arxiv.org/abs/2203.09795>`_, section 5.

    Args:
        stem (dict): Config of a stem, as of :class:`TokenReductionViT`.
        patch_size (int): Side of a patch in pixels. Defaults to 16.
        **beit: Other arguments of ``BEiTPretrainViT``.

    Raises:
        ValueError: If patches of the stem are not of ``patch_size``.
    """

    def __init__(self, stem: dict, patch_size: int = 16, **beit):
        super().__init__(patch_size=patch_size, **beit)
        self.patch_embed = build_stem(self, stem, patch_size)

    def forward(self, x: Tensor, mask: Tensor | None = None):
        """See ``BEiTPretrainViT``; without a mask, as in a classifier, plain
        features."""
        return super().forward(x, mask)
