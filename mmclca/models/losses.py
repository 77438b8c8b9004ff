# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch.nn.functional as F
from torch import Tensor, nn

from mmclca.registry import MODELS
from mmclca.utils.messages import check_number


@MODELS.register_module()
class ThresholdedBCE(nn.Module):
    """Binary cross-entropy per class with targets 0 and 1.

    `ResNet strikes back`, section 2.2; DeiT III (Touvron's thesis, 2022,
    section 6.2). Each class in a mixed image gets the target 1, regardless of
    its share. The loss is the mean over images and classes; mmpretrain's
    ``CrossEntropyLoss(use_sigmoid=True)`` is K times larger, because its head
    divides by the number of images only.

    Args:
        threshold (float): Targets above this value become 1. With 0, label
            smoothing would turn every class on. Defaults to 0.
        loss_weight (float): Weight of the loss. Defaults to 1.

    Raises:
        Error: If ``threshold`` is outside 0 to 1, or the weight is
            negative.
    """

    def __init__(self, threshold: float = 0.0, loss_weight: float = 1.0):
        super().__init__()
        check_number(maximum=1, threshold=threshold)
        check_number(loss_weight=loss_weight)
        self.threshold = threshold
        self.loss_weight = loss_weight

    def forward(self, cls_score: Tensor, label: Tensor, **_) -> Tensor:
        """Compute the loss.

        Args:
            cls_score (Tensor): Class scores (B, K).
            label (Tensor): Labels (B,), or class shares (B, K).
            **_: ``avg_factor`` from the head, unused.
        """
        if label.dim() == 1:
            label = F.one_hot(label, cls_score.size(1))
        target = (label > self.threshold).to(cls_score)
        loss = F.binary_cross_entropy_with_logits(cls_score, target)
        return self.loss_weight * loss
