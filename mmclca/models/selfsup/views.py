# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Several views of each image, prepared for a model."""

import torch
from mmpretrain.models import ClsDataPreprocessor

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
