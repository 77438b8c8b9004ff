# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch
import torch.nn.functional as F
from torch import Tensor


def moco_v3_loss(
    q1: Tensor, q2: Tensor, k1: Tensor, k2: Tensor, tau: float
) -> Tensor:
    """Compute the loss of MoCo v3 of two views, in one process.

    `An Empirical Study of Training Self-Supervised Vision Transformers
    <https://arxiv.org/abs/2104.02057>`_, algorithm 1: each query finds the
    key of the same image in the other view. Training is mmpretrain's
    ``MoCoV3``, whose head computes the same over all processes.

    Args:
        q1 (Tensor): Predictions of the first view, (B, C).
        q2 (Tensor): Those of the second.
        k1 (Tensor): Projections of the momentum encoder, of the first view.
        k2 (Tensor): Those of the second.
        tau (float): Temperature by which cosines are divided.
    """
    own = torch.arange(len(q1), device=q1.device)
    cosines = (
        F.normalize(q, dim=1) @ F.normalize(k, dim=1).mT
        for q, k in ((q1, k2), (q2, k1))
    )
    return 2 * tau * sum(F.cross_entropy(x / tau, own) for x in cosines)
