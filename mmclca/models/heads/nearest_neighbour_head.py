# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Sequence

import torch
from mmpretrain.models.heads import ClsHead
from torch import Tensor

from mmclca.registry import MODELS

from ..retrievers.features import cosine_similarity, knn_scores


@MODELS.register_module()
class NearestNeighbourHead(ClsHead):
    """Classes by votes of the training images that are nearest.

    What another head makes of the outputs of the backbone is compared with
    the features of the training images, which are part of the weights;
    ``mmclca.apis.Probe`` puts them there.

    Args:
        head (dict): Config of the head whose ``pre_logits`` are compared;
            it knows the number of classes.
        num_images (int): Training images M.
        in_channels (int): Channels D of the features.
        k (int): Images that vote. Defaults to 3.
        temperature (float): What the votes are divided by, before a softmax.
            Defaults to 1.
        topk (int | Sequence[int]): Top-k accuracies. Defaults to (1, ).
        init_cfg (dict, optional): Initialization config. Defaults to None.
    """

    def __init__(
        self,
        head: dict,
        num_images: int,
        in_channels: int,
        k: int = 3,
        temperature: float = 1.0,
        topk: int | Sequence[int] = (1,),
        init_cfg: dict | None = None,
    ):
        super().__init__(topk=topk, init_cfg=init_cfg)
        self.head = MODELS.build(head)
        self.num_classes = self.head.num_classes
        self.k = k
        self.temperature = temperature
        self.register_buffer('features', torch.zeros(num_images, in_channels))
        self.register_buffer(
            'labels', torch.zeros(num_images, dtype=torch.long)
        )

    def pre_logits(self, feats: tuple[Tensor, ...]) -> Tensor:
        """Outputs of the backbone to one feature an image (B, D)."""
        return self.head.pre_logits(feats)

    def forward(self, feats: tuple[Tensor, ...]) -> Tensor:
        """Outputs of the backbone to class scores (B, num_classes)."""
        return self.scores(self.pre_logits(feats))

    def scores(self, features: Tensor) -> Tensor:
        """Features (B, D) to class scores (B, num_classes)."""
        similarity = cosine_similarity(features, self.features)
        votes = knn_scores(similarity, self.labels, self.num_classes, self.k)
        return votes / self.temperature
