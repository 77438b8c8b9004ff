# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What the baselines learn from beside the cross entropy, as functions.

Shapes: features are (B, D), or of two views (2B, D), all of the first view
before those of the second; labels (B,) are those of the images.
"""

import torch
import torch.nn.functional as F
from torch import Tensor


def _pairwise(features: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Compare all with all: cosines, and which are of the same class."""
    unit = F.normalize(features, dim=-1)
    labels = labels.repeat(len(features) // len(labels))
    return unit @ unit.T, labels[:, None] == labels


def transfg_contrast(
    features: Tensor, labels: Tensor, margin: float = 0.4
) -> Tensor:
    """Pull images of a class together, push others below a cosine.

    As in `TransFG`: the sum over all pairs, an image with itself among them,
    divided by their number.

    Args:
        features (Tensor): (B, D) or (2B, D).
        labels (Tensor): (B,).
        margin (float): Cosine up to which two classes may be alike. Defaults
            to 0.4.
    """
    cosine, same = _pairwise(features, labels)
    return torch.where(same, 1 - cosine, (cosine - margin).relu()).mean()


def sim_trans_contrast(
    features: Tensor, labels: Tensor, margin: float = 0.3
) -> Tensor:
    """Pull images of a class together, push others by an adaptive margin.

    As in `SIM-Trans`: another class counts while its dissimilarity, (1 -
    cosine) / 2, is no more than the margin above the mean of that within the
    class of the image, which is 0 where it is alone in the batch.

    Args:
        features (Tensor): (B, D) or (2B, D).
        labels (Tensor): (B,).
        margin (float): Added to that mean. Defaults to 0.3.
    """
    cosine, same = _pairwise(features, labels)
    unlike = (1 - cosine) / 2
    others = same & ~torch.eye(len(same), dtype=bool, device=same.device)
    own = (unlike * others).sum(1) / (others.sum(1) + 1e-6)
    counts = margin + own[:, None] - unlike >= 0
    pairs = torch.where(same, 1 - cosine, (1 + cosine) * counts)
    return pairs.mean()


def cle_vit_loss(
    logits: Tensor,
    features: Tensor,
    labels: Tensor,
    origin: float,
    swap: float,
    contrast: float,
    label_smoothing: float = 0.0,
) -> Tensor:
    """Sum the loss of CLE-ViT's public code.

    The cross entropy of both views, and :func:`transfg_contrast` over both.

    Args:
        logits (Tensor): Class scores of two views, (2B, K).
        features (Tensor): (2B, D).
        labels (Tensor): (B,).
        origin (float): Weight of the cross entropy of the first view.
        swap (float): Of the second, shuffled one.
        contrast (float): Of the contrast.
        label_smoothing (float): Of both cross entropies, 0.1 in the public
            code. Defaults to 0.0.
    """
    first, second = (
        F.cross_entropy(view, labels, label_smoothing=label_smoothing)
        for view in logits.chunk(2)
    )
    alike = transfg_contrast(features, labels)
    return origin * first + swap * second + contrast * alike


def cle_vit_triplet(
    features: Tensor, negative: Tensor, margin: float = 1.0
) -> Tensor:
    """Pull the views of an image together, push another image away.

    As in `CLE-ViT`: Euclidean distances of features of unit length. The
    public code does not compute it.

    Args:
        features (Tensor): (2B, D).
        negative (Tensor): For each image another one, of whose first view the
            distance is taken, (B,).
        margin (float): How much farther that is to be. Defaults to 1.0.
    """
    anchor, positive = F.normalize(features, dim=-1).chunk(2)
    near = (anchor - positive).norm(dim=-1)
    far = (anchor - anchor[negative]).norm(dim=-1)
    return (near - far + margin).relu().mean()
