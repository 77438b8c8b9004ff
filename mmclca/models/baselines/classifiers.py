# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Classifiers with contrastive losses between the images in a batch."""

from typing import Literal

import torch
from mmpretrain.models.classifiers import ImageClassifier
from mmpretrain.structures import DataSample
from torch import Tensor

from mmclca.errors import Error
from mmclca.registry import MODELS
from mmclca.utils.messages import check_choice

from ..pretrained import use_safe_initializer
from .losses import (
    CLEViTWeights,
    cle_vit_loss,
    cle_vit_triplet,
    sim_trans_contrast,
    transfg_contrast,
)

CONTRASTS = dict(transfg=transfg_contrast, sim_trans=sim_trans_contrast)


def _labels(data_samples: list[DataSample]) -> Tensor:
    return torch.cat([sample.gt_label for sample in data_samples])


def _check_no_mixing(model: ImageClassifier) -> None:
    if vars(model.data_preprocessor).get('batch_augments') is not None:
        raise Error(
            f'{type(model).__name__} compares classes, which batch augments '
            'mix (Mixup, CutMix); remove batch_augments'
        )


@MODELS.register_module()
class ContrastiveClassifier(ImageClassifier):
    """Image classifier with a contrastive loss in addition to the head's loss.

    The loss compares the last output of the backbone or neck between the
    images in the batch of one process. In evaluation the model is an
    ``ImageClassifier``.

    Args:
        backbone (dict): Backbone config.
        neck (dict, optional): Neck config. Defaults to None.
        head (dict, optional): Head config. Defaults to None.
        contrast (str): 'transfg', see :func:`.losses.transfg_contrast`, or
            'sim_trans', see :func:`.losses.sim_trans_contrast`.
        margin (float, optional): Margin of the contrastive loss. Defaults to
            None, the margin in its paper: 0.4 and 0.3.
        contrast_weight (float): Weight of the contrastive loss. Defaults to
            1.0.
        **classifier: Other arguments of ``ImageClassifier``.

    Raises:
        Error: If ``contrast`` is unknown, or batch augments (Mixup,
            CutMix) would mix the compared classes.
    """

    def __init__(
        self,
        backbone: dict,
        neck: dict | None = None,
        head: dict | None = None,
        *,
        contrast: Literal['transfg', 'sim_trans'],
        margin: float | None = None,
        contrast_weight: float = 1.0,
        **classifier,
    ):
        check_choice(CONTRASTS, contrast=contrast)
        super().__init__(backbone, neck, head, **classifier)
        self.init_cfg = use_safe_initializer(self.init_cfg)
        _check_no_mixing(self)
        self.contrast = CONTRASTS[contrast]
        self.options = {} if margin is None else dict(margin=margin)
        self.contrast_weight = contrast_weight

    def loss(self, inputs: Tensor, data_samples: list[DataSample]) -> dict:
        """Compute the losses of the head and the contrast, by name.

        Args:
            inputs (Tensor): Images (B, 3, H, W).
            data_samples (list[DataSample]): Their annotations.
        """
        feats = self.extract_feat(inputs)
        losses = self.head.loss(feats, data_samples)
        contrast = self.contrast(
            feats[-1], _labels(data_samples), **self.options
        )
        return dict(losses, loss_contrast=self.contrast_weight * contrast)


@MODELS.register_module()
class CLEViTClassifier(ImageClassifier):
    """Image classifier trained on two views of each image.

    `CLE-ViT: Contrastive Learning Encoded Transformer for
    Ultra-Fine-Grained Visual Categorization
    <https://doi.org/10.24963/ijcai.2023/504>`_, for any backbone.
    :class:`ShuffledView` provides the views in one image; evaluation uses one
    view, as in ``ImageClassifier``. Features are the last output of the
    backbone or neck. The head's ``loss`` is not used.

    Args:
        backbone (dict): Backbone config.
        neck (dict, optional): Neck config. Defaults to None.
        head (dict, optional): Head config. Defaults to None.
        contrast (str): 'released', the loss in the public code, see
            :func:`.losses.cle_vit_loss`; or 'triplet', the loss in the paper,
            see :func:`.losses.cle_vit_triplet`, with a random other image from
            the batch. Defaults to 'released'.
        origin_weight (float): Weight of the plain view's cross-entropy.
            Defaults to 1.0.
        swap_weight (float): Weight of the shuffled view's cross-entropy.
            Defaults to 1.0.
        contrast_weight (float): Weight of the contrastive loss. Defaults to
            1.0.
        margin (float): Margin of the triplet loss. Defaults to 1.0.
        label_smoothing (float): Label smoothing in both cross-entropies,
            0.1 in the public code. Defaults to 0.0.
        **classifier: Other arguments of ``ImageClassifier``.

    Raises:
        Error: If ``contrast`` is unknown, or batch augments (Mixup,
            CutMix) would mix the compared classes; in training, if the image
            width is not twice the height, or a triplet lacks another image.
    """

    def __init__(
        self,
        backbone: dict,
        neck: dict | None = None,
        head: dict | None = None,
        *,
        contrast: Literal['released', 'triplet'] = 'released',
        origin_weight: float = 1.0,
        swap_weight: float = 1.0,
        contrast_weight: float = 1.0,
        margin: float = 1.0,
        label_smoothing: float = 0.0,
        **classifier,
    ):
        check_choice(('released', 'triplet'), contrast=contrast)
        super().__init__(backbone, neck, head, **classifier)
        self.init_cfg = use_safe_initializer(self.init_cfg)
        _check_no_mixing(self)
        self.contrast = contrast
        released = contrast_weight * (contrast == 'released')
        self.loss_weights = CLEViTWeights(
            origin_weight, swap_weight, released, label_smoothing
        )
        self.contrast_weight = contrast_weight
        self.margin = margin

    def loss(self, inputs: Tensor, data_samples: list[DataSample]) -> dict:
        """Compute the losses by name.

        Args:
            inputs (Tensor): Two views side by side, (B, 3, H, 2W).
            data_samples (list[DataSample]): Annotations of the images.
        """
        height, width = inputs.shape[-2:]
        if width == height or width % 2:
            raise Error(
                f'images of {height} x {width} px are not two square views; '
                'use the transform mmclca.ShuffledView in training'
            )
        feats = self.extract_feat(torch.cat(inputs.chunk(2, dim=-1)))
        features, labels = feats[-1], _labels(data_samples)
        loss = cle_vit_loss(
            self.head(feats), features, labels, self.loss_weights
        )
        losses = dict(loss=loss)
        if self.contrast == 'triplet':
            losses['loss_triplet'] = self._triplet(features)
        return losses

    def _triplet(self, features: Tensor) -> Tensor:
        B = len(features) // 2
        if B == 1:
            raise Error(
                'a triplet needs two images per batch; set drop_last=True'
            )
        index = torch.arange(B, device=features.device)
        negative = (index + torch.randint_like(index, 1, B)) % B
        triplet = cle_vit_triplet(features, negative, self.margin)
        return self.contrast_weight * triplet
