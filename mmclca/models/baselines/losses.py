# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Contrastive losses of the baselines.

Shapes: features are (B, D), or (2B, D) for two views with all first views
before all second views; labels (B,) belong to the images.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor


def _pairwise(features: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return cosine similarities and same-class masks of all pairs."""
    unit = F.normalize(features, dim=-1)
    labels = labels.repeat(len(features) // len(labels))
    return unit @ unit.T, labels[:, None] == labels


def transfg_contrast(
    features: Tensor, labels: Tensor, margin: float = 0.4
) -> Tensor:
    """Contrastive loss of `TransFG`: increase similarity within a class.

    Similarities between classes are penalized above ``margin``. The mean
    covers all pairs, including each image with itself.
    """
    cosine, same = _pairwise(features, labels)
    return torch.where(same, 1 - cosine, (cosine - margin).relu()).mean()


def sim_trans_contrast(
    features: Tensor, labels: Tensor, margin: float = 0.3
) -> Tensor:
    """Contrastive loss of `SIM-Trans`, with an adaptive margin.

    Images from different classes are penalized if their dissimilarity,
    (1 - cosine) / 2, is at most the image's mean within-class dissimilarity
    plus ``margin``. This mean is 0 for a class with one image in the batch.
    """
    cosine, same = _pairwise(features, labels)
    unlike = (1 - cosine) / 2
    positives = same & ~torch.eye(len(same), dtype=bool, device=same.device)
    within = (unlike * positives).sum(1) / (positives.sum(1) + 1e-6)
    counts = margin + within[:, None] - unlike >= 0
    pairs = torch.where(same, 1 - cosine, (1 + cosine) * counts)
    return pairs.mean()


@dataclass(frozen=True)
class CLEViTWeights:
    """Weights of the losses of CLE-ViT, and label smoothing.

    Args:
        origin (float): Weight of the cross-entropy of the original views.
        swap (float): Weight of the cross-entropy of the shuffled views.
        contrast (float): Weight of :func:`transfg_contrast` over both.
        label_smoothing (float): Label smoothing. Defaults to 0.
    """

    origin: float
    swap: float
    contrast: float
    label_smoothing: float = 0.0


def cle_vit_loss(
    logits: Tensor, features: Tensor, labels: Tensor, weights: CLEViTWeights
) -> Tensor:
    """Loss of CLE-ViT's public code, from both views.

    Args:
        logits (Tensor): Class scores (2B, K).
        features (Tensor): Features (2B, C).
        labels (Tensor): Classes (B,).
        weights (CLEViTWeights): Weights of the losses.
    """
    first, second = (
        F.cross_entropy(view, labels, label_smoothing=weights.label_smoothing)
        for view in logits.chunk(2)
    )
    alike = transfg_contrast(features, labels)
    return (
        weights.origin * first
        + weights.swap * second
        + weights.contrast * alike
    )


def cle_vit_triplet(
    features: Tensor, negative: Tensor, margin: float = 1.0
) -> Tensor:
    """Triplet loss of the `CLE-ViT` paper, absent in its public code.

    The normalized features of both views should be closer, by ``margin`` in
    Euclidean distance, than the first view and that of image ``negative``
    (B,).
    """
    anchor, positive = F.normalize(features, dim=-1).chunk(2)
    close = (anchor - positive).norm(dim=-1)
    far = (anchor - anchor[negative]).norm(dim=-1)
    return (close - far + margin).relu().mean()
