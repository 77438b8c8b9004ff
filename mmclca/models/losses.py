# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch.nn.functional as F
from torch import Tensor, nn

from mmclca.registry import MODELS
from mmclca.utils.messages import number


@MODELS.register_module()
class ThresholdedBCE(nn.Module):
    """Binary cross-entropy of each class, whose targets are 0 or 1.

    `ResNet strikes back`, section 2.2; DeiT III (Touvron's thesis, 2022,
    section 6.2). Each class of a mixed image is a target of 1, whatever its
    share. A mean over images and classes: mmpretrain's ``CrossEntropyLoss(
    use_sigmoid=True)`` is K times that, since a head has it divide by images.

    Args:
        threshold (float): What a target must exceed to become 1. Smoothed
            ones exceed 0 for every class. Defaults to 0.
        loss_weight (float): Weight of the loss. Defaults to 1.

    Raises:
        ValueError: If ``threshold`` is outside of 0 to 1, or the weight
            negative.
    """

    def __init__(self, threshold: float = 0.0, loss_weight: float = 1.0):
        super().__init__()
        number(most=1, threshold=threshold)
        number(loss_weight=loss_weight)
        self.threshold = threshold
        self.loss_weight = loss_weight

    def forward(self, cls_score: Tensor, label: Tensor, **_) -> Tensor:
        """Compute the loss.

        Args:
            cls_score (Tensor): Class scores (B, K).
            label (Tensor): Labels (B,), or shares of classes (B, K).
            **_: ``avg_factor`` of a head; the mean is another one.
        """
        if label.dim() == 1:
            label = F.one_hot(label, cls_score.size(1))
        target = (label > self.threshold).to(cls_score)
        loss = F.binary_cross_entropy_with_logits(cls_score, target)
        return self.loss_weight * loss
