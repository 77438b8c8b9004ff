# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Several views per image: data preprocessor and loss of MoCo v3."""

import torch
import torch.nn.functional as F
from mmpretrain.models import ClsDataPreprocessor
from torch import Tensor

from mmclca.registry import MODELS


@MODELS.register_module()
class ViewsDataPreprocessor(ClsDataPreprocessor):
    """mmpretrain's ``ClsDataPreprocessor`` for several views per image.

    Views from mmpretrain's ``MultiView`` become a list of V tensors (B, 3, H,
    W). Single images are processed as usual.

    Args:
        **settings: ``mean``, ``std``, ``to_rgb`` and further arguments of
            ``ClsDataPreprocessor``.
    """

    def forward(self, data: dict, training: bool = False) -> dict:
        """See ``ClsDataPreprocessor``."""
        views = data['inputs']
        if torch.is_tensor(views[0]) and views[0].dim() == 3:
            return super().forward(data, training)
        done = [
            super(ViewsDataPreprocessor, self).forward(dict(data, inputs=view))
            for view in views
        ]
        return dict(done[0], inputs=[batch['inputs'] for batch in done])


def moco_v3_loss(
    q1: Tensor, q2: Tensor, k1: Tensor, k2: Tensor, tau: float
) -> Tensor:
    """Loss of MoCo v3 for two views in one process.

    `An Empirical Study of Training Self-Supervised Vision Transformers
    <https://arxiv.org/abs/2104.02057>`_, algorithm 1: each query is matched
    with the key of the same image in the other view. Training uses
    mmpretrain's ``MoCoV3``, whose head computes the same loss over all
    processes.

    Args:
        q1 (Tensor): Predictions for the first view, (B, C).
        q2 (Tensor): Predictions for the second view, (B, C).
        k1 (Tensor): Momentum-encoder projections of the first view, (B, C).
        k2 (Tensor): Momentum-encoder projections of the second view, (B, C).
        tau (float): Temperature that divides the cosine similarities.
    """
    positives = torch.arange(len(q1), device=q1.device)
    first, second = (
        F.cross_entropy(
            F.normalize(q, dim=1) @ F.normalize(k, dim=1).mT / tau, positives
        )
        for q, k in ((q1, k2), (q2, k1))
    )
    return 2 * tau * (first + second)
