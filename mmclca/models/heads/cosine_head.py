# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Head with scores by the cosine between features and class vectors."""

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from mmclca.registry import MODELS
from mmclca.utils.messages import check_number

from ..layers.deit_init import trunc_normal
from .base import Head


@MODELS.register_module()
class CosineClsHead(Head):
    """Classifier by cosine similarity, independent of feature length.

    `Dynamic Few-Shot Visual Learning without Forgetting`, section 3.2; here
    with a fixed scale.

    Args:
        num_classes (int): Number of classes K.
        in_channels (int): Channels C of a feature.
        scale (float): Factor from cosines to scores. Defaults to 16.0.
        topk (int | Sequence[int]): Numbers k of the top-k accuracies that are
            computed. Defaults to (1,).
        **head: ``loss``, ``cal_acc`` and ``init_cfg`` for mmpretrain's
            ``ClsHead``.

    Raises:
        Error: If a size is not a positive integer, or ``scale`` is not a
            number of at least 0.
    """

    has_class_loss = True

    def __init__(
        self,
        num_classes: int,
        in_channels: int,
        scale: float = 16.0,
        topk: int | Sequence[int] = (1,),
        **head,
    ):
        super().__init__(num_classes, in_channels, topk, **head)
        check_number(scale=scale)
        self.scale = scale
        self.weight = nn.Parameter(trunc_normal(num_classes, in_channels))

    def pre_logits(self, feats: tuple[Tensor, ...]) -> Tensor:
        """Return the features (B, C) of the last output."""
        return feats[-1]

    def forward(self, feats: tuple[Tensor, ...]) -> Tensor:
        """Map features (B, C) to class scores (B, K)."""
        features = F.normalize(self.pre_logits(feats), dim=-1)
        return self.scale * features @ F.normalize(self.weight, dim=-1).T
