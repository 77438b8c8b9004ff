# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Several views per image: data preprocessor and loss of MoCo v3."""

import torch
import torch.nn.functional as F
from mmpretrain.models import ClsDataPreprocessor
from torch import Tensor

from mmclca.registry import MODELS


@MODELS.register_module()
class ViewsDataPreprocessor(ClsDataPreprocessor):
    """mmpretrain's ``ClsDataPreprocessor`` that also takes several views.

    Views, which mmpretrain's ``MultiView`` makes, become a list of V tensors
    (B, 3, H, W).

    Args:
        **settings: ``mean``, ``std``, ``to_rgb`` and others of
            ``ClsDataPreprocessor``.
    """

    def forward(self, data: dict, training: bool = False) -> dict:
        """See ``ClsDataPreprocessor``."""
        views = data['inputs']
        if torch.is_tensor(views[0]) and views[0].dim() == 3:
            return super().forward(data, training)
        done = [
            super(ViewsDataPreprocessor, self).forward(dict(data, inputs=one))
            for one in views
        ]
        return dict(done[0], inputs=[one['inputs'] for one in done])


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
