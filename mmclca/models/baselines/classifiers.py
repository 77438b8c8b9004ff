# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Classifiers that learn from contrasts between the images of a batch."""

from typing import Literal

import torch
from mmpretrain.models.classifiers import ImageClassifier
from mmpretrain.structures import DataSample
from torch import Tensor

from mmclca.registry import MODELS
from mmclca.utils.messages import one_of

from .losses import (
    cle_vit_loss,
    cle_vit_triplet,
    sim_trans_contrast,
    transfg_contrast,
)

CONTRASTS = dict(transfg=transfg_contrast, sim_trans=sim_trans_contrast)


def _labels(data_samples: list[DataSample]) -> Tensor:
    return torch.cat([sample.gt_label for sample in data_samples])


def _refuse_mixing(model: ImageClassifier) -> None:
    if vars(model.data_preprocessor).get('batch_augments') is not None:
        raise ValueError(
            f'{type(model).__name__} compares classes, which batch augments '
            'mix (Mixup, CutMix); remove batch_augments'
        )


@MODELS.register_module()
class ContrastiveClassifier(ImageClassifier):
    """Image classifier with a contrast beside the loss of its head.

    The contrast compares the last output of the backbone, or of the neck,
    between the images of the batch of one process. In evaluation it is an
    ``ImageClassifier``.

    Args:
        *classifier: The first arguments of ``ImageClassifier``.
        contrast (str): 'transfg', see :func:`.losses.transfg_contrast`, or
            'sim_trans', see :func:`.losses.sim_trans_contrast`.
        margin (float, optional): Of the contrast. Defaults to None, that of
            its paper: 0.4 and 0.3.
        contrast_weight (float): Weight of the contrast. Defaults to 1.0.
        **kwargs: The other arguments of ``ImageClassifier``.

    Raises:
        ValueError: If there is no such contrast, or if batch augments
            (Mixup, CutMix) would mix the classes that it compares.
    """

    def __init__(
        self,
        *classifier,
        contrast: Literal['transfg', 'sim_trans'],
        margin: float | None = None,
        contrast_weight: float = 1.0,
        **kwargs,
    ):
        one_of(CONTRASTS, contrast=contrast)
        super().__init__(*classifier, **kwargs)
        _refuse_mixing(self)
        self.contrast = CONTRASTS[contrast]
        self.options = {} if margin is None else dict(margin=margin)
        self.contrast_weight = contrast_weight

    def loss(self, inputs: Tensor, data_samples: list[DataSample]) -> dict:
        """Losses of the head and of the contrast, by name.

        Args:
            inputs (Tensor): Images (B, 3, H, W).
            data_samples (list[DataSample]): Their annotations.
        """
        feats = self.extract_feat(inputs)
        losses = self.head.loss(feats, data_samples)
        found = self.contrast(feats[-1], _labels(data_samples), **self.options)
        return dict(losses, loss_contrast=self.contrast_weight * found)


@MODELS.register_module()
class CLEViTClassifier(ImageClassifier):
    """Image classifier that learns from two views of each image.

    `CLE-ViT: Contrastive Learning Encoded Transformer for
    Ultra-Fine-Grained Visual Categorization
    <https://doi.org/10.24963/ijcai.2023/504>`_, for any backbone.
    The views come side by side from :class:`ShuffledView`; in evaluation
    there is one, and this is an ``ImageClassifier``. Features are the last
    output of the backbone, or of the neck. The ``loss`` of the head is not
    asked.

    Args:
        *classifier: The first arguments of ``ImageClassifier``.
        contrast (str): 'released', the loss of the public code, see
            :func:`.losses.cle_vit_loss`; or 'triplet', that of the paper, see
            :func:`.losses.cle_vit_triplet`, with another image of the batch,
            drawn at random. Defaults to 'released'.
        origin_weight (float): Weight of the cross entropy of the plain view.
            Defaults to 1.0.
        swap_weight (float): Of the shuffled view. Defaults to 1.0.
        contrast_weight (float): Of the contrast. Defaults to 1.0.
        margin (float): Of the triplet. Defaults to 1.0.
        label_smoothing (float): Of both cross entropies, 0.1 in the public
            code. Defaults to 0.0.
        **kwargs: The other arguments of ``ImageClassifier``.

    Raises:
        ValueError: If there is no such contrast, or if batch augments
            (Mixup, CutMix) would mix the classes; in training, if images are
            square or of an odd width, which two views side by side are not,
            or if there is no other image for a triplet.
    """

    def __init__(
        self,
        *classifier,
        contrast: Literal['released', 'triplet'] = 'released',
        origin_weight: float = 1.0,
        swap_weight: float = 1.0,
        contrast_weight: float = 1.0,
        margin: float = 1.0,
        label_smoothing: float = 0.0,
        **kwargs,
    ):
        one_of(('released', 'triplet'), contrast=contrast)
        super().__init__(*classifier, **kwargs)
        _refuse_mixing(self)
        self.contrast = contrast
        released = contrast_weight * (contrast == 'released')
        self.options = origin_weight, swap_weight, released, label_smoothing
        self.contrast_weight = contrast_weight
        self.margin = margin

    def loss(self, inputs: Tensor, data_samples: list[DataSample]) -> dict:
        """Losses by name.

        Args:
            inputs (Tensor): Two views side by side, (B, 3, H, 2W).
            data_samples (list[DataSample]): Annotations of the images.
        """
        height, width = inputs.shape[-2:]
        if width == height or width % 2:
            raise ValueError(
                f'images of {height} x {width} px are not two square views; '
                'use the transform mmclca.ShuffledView in training'
            )
        feats = self.extract_feat(torch.cat(inputs.chunk(2, dim=-1)))
        features, labels = feats[-1], _labels(data_samples)
        loss = cle_vit_loss(self.head(feats), features, labels, *self.options)
        losses = dict(loss=loss)
        if self.contrast == 'triplet':
            losses['loss_triplet'] = self._triplet(features)
        return losses

    def _triplet(self, features: Tensor) -> Tensor:
        B = len(features) // 2
        if B == 1:
            raise ValueError(
                'a triplet needs two images per batch; set drop_last=True'
            )
        own = torch.arange(B, device=features.device)
        negative = (own + torch.randint_like(own, 1, B)) % B
        found = cle_vit_triplet(features, negative, self.margin)
        return self.contrast_weight * found
