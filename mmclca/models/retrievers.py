# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Features of images, and a retriever that ranks a gallery by them."""

import os
from collections.abc import Iterable
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from mmpretrain.models import ImageToImageRetriever
from mmpretrain.structures import DataSample
from torch import Tensor
from torch.utils.data import DataLoader

from mmclca.errors import Error
from mmclca.registry import MODELS
from mmclca.utils.messages import check_choice

from .classifiers import FEATURES, extract_feature


def cosine_similarity(queries: Tensor, gallery: Tensor) -> Tensor:
    """Compute the cosine similarity of queries and gallery features.

    It needs memory for N x M numbers and does not copy the gallery.

    Args:
        queries (Tensor): Features (N, C).
        gallery (Tensor): Features (M, C).

    Returns:
        Tensor: Similarities (N, M), -1 to 1.
    """
    length = gallery.norm(dim=-1).clamp_min(1e-12)
    return (F.normalize(queries, dim=-1) @ gallery.T).div_(length)


def nearest_votes(
    similarity: Tensor,
    labels: Tensor,
    num_classes: int,
    k: int | None = 5,
    temperature: float = 0.07,
) -> Tensor:
    """Compute class scores from the k nearest gallery images.

    A vote weighs exp(similarity / temperature): Wu et al., `Unsupervised
    Feature Learning via Non-Parametric Instance Discrimination
    <https://arxiv.org/abs/1805.01978>`_ (2018), section 3.4.

    Args:
        similarity (Tensor): Cosine similarities (N, M).
        labels (Tensor): Gallery labels (M,).
        num_classes (int): Number of classes.
        k (int, optional): Number of voters; None for the whole gallery.
            Defaults to 5.
        temperature (float): Small values favor the nearest image. Defaults
            to 0.07.

    Returns:
        Tensor: Scores (N, num_classes); each row sums to 1.
    """
    voters = labels.expand_as(similarity)
    if k is not None:
        k = min(k, similarity.shape[1])
        similarity, order = similarity.topk(k, dim=1)
        voters = labels[order]
    votes = (similarity / temperature).softmax(dim=1)
    # an export would turn len(votes) into a constant
    scores = votes.new_zeros(votes.shape[0], num_classes)
    return scores.scatter_add_(1, voters, votes)


def files_of(paths: Iterable[str]) -> Tensor:
    """Hash the resolved paths of image files to numbers (M,).

    The hashes are valid in this process only and need less memory than paths.
    """
    numbers = (hash(os.path.realpath(path)) for path in paths)
    return torch.from_numpy(np.fromiter(numbers, np.int64))


def hide_same_files(
    similarity: Tensor, paths: Iterable[str | None], files: Tensor
) -> None:
    """Set similarities (N, M) of identical files to minus infinity, in place.

    ``paths`` are the N query files, or None for unknown files; ``files`` are
    the gallery hashes from :func:`files_of`.
    """
    for row, path in zip(similarity, paths, strict=True):
        if path is not None:
            row[files == hash(os.path.realpath(path))] = -torch.inf


ENCODER = 'image_encoder.'


@MODELS.register_module()
class TokenReductionRetriever(ImageToImageRetriever):
    """Image retrieval by the features of a classifier.

    Differences to mmpretrain's ``ImageToImageRetriever``:

    - It compares the features before the last linear layer, not class scores.
    - It loads classifier checkpoints without conversion.
    - With a labeled gallery, each query gets a ``gt_score``: 1 for gallery
      images with its label. This allows evaluation.
    - It excludes the query itself if the gallery contains the same file and
      the dataset provides its path (``ImageRetrievalInferencer`` does not).
    - It needs memory for N x M instead of N x M x C numbers.

    Args:
        image_encoder (dict): Config of a classifier.
        prototype (dict | str | Tensor | DataLoader): The gallery, as in
            ``ImageToImageRetriever``. Labels and files are known only for a
            ``dict`` or ``DataLoader`` with a dataset.
        feature (str): 'pre_logits' for the input features of the head's last
            linear layer, 'backbone' for the CLS token of the last layer.
            Defaults to 'pre_logits'.
        **kwargs: ``topk`` (number of images in ``pred_label``; -1, the
            default, for all), ``data_preprocessor`` (replaces that of
            ``image_encoder``) and ``init_cfg`` of ``ImageToImageRetriever``.

    Raises:
        Error: If the feature is unknown; on preparing the gallery, if it is
            empty, or features are not finite or differ in dimension.
    """

    def __init__(
        self,
        image_encoder: dict,
        prototype: dict | str | Tensor | DataLoader,
        feature: Literal['backbone', 'pre_logits'] = 'pre_logits',
        **kwargs,
    ):
        check_choice(FEATURES, feature=feature)
        super().__init__(
            image_encoder, prototype, similarity_fn=cosine_similarity, **kwargs
        )
        self.feature = feature
        self.labels = None  # of the gallery
        self.files = None  # of the gallery
        self._register_load_state_dict_pre_hook(_add_encoder_prefix)

    def extract_feat(self, inputs: Tensor) -> Tensor:
        """Map images (B, 3, H, W) to features (B, C)."""
        return extract_feature(self.image_encoder, inputs, self.feature)

    def loss(self, inputs: Tensor, data_samples: list[DataSample]) -> dict:
        """Compute the losses of the classifier."""
        return self.image_encoder.loss(inputs, data_samples)

    def _get_prototype_vecs_from_dataloader(self, data_loader) -> Tensor:
        dataset = data_loader.dataset
        if len(dataset) == 0:
            raise Error(
                'the gallery is empty; set prototype= to a dataset with images'
            )
        infos = [dataset.get_data_info(i) for i in range(len(dataset))]
        if 'gt_label' in infos[0]:
            self.labels = torch.tensor([int(i['gt_label']) for i in infos])
        self.files = files_of(info['img_path'] for info in infos)
        return super()._get_prototype_vecs_from_dataloader(data_loader)

    def prepare_prototype(self) -> None:
        """Compute the gallery features."""
        self.labels = self.files = None
        if isinstance(self.prototype, dict):
            # mmengine cannot serialize a dataset without images
            self.prototype['dataset']['serialize_data'] = False
        super().prepare_prototype()
        broken = (~self.prototype_vecs.isfinite()).any(dim=1).sum()
        if broken:
            raise Error(
                f'the features of {broken} of {len(self.prototype_vecs)} '
                'gallery images are NaN or infinite; use other weights'
            )

    def matching(
        self, inputs: Tensor, files: list[str | None] | None = None
    ) -> dict:
        """Rank the gallery by similarity.

        Args:
            inputs (Tensor): Query features (B, C).
            files (list[str | None], optional): Query files to exclude from the
                results. Defaults to None.
        """
        if inputs.shape[1] != self.prototype_vecs.shape[1]:
            raise Error(
                f'the gallery has dimension {self.prototype_vecs.shape[1]}, '
                f'this model {inputs.shape[1]}; rebuild it with this model'
            )
        score = self.similarity_fn(inputs, self.prototype_vecs)
        if files and self.files is not None:
            hide_same_files(score, files, self.files.to(score.device))
        pred_score, pred_label = score.sort(descending=True, dim=-1)
        return dict(score=score, pred_label=pred_label, pred_score=pred_score)

    def predict(
        self, inputs: Tensor, data_samples: list[DataSample] | None = None
    ) -> list[DataSample]:
        """Rank the gallery for each image.

        Args:
            inputs (Tensor): Images (B, 3, H, W).
            data_samples (list[DataSample], optional): Their annotations.
                Defaults to None.
        """
        if not self.prototype_inited:
            self.prepare_prototype()
        files = [sample.get('img_path') for sample in data_samples or ()]
        result = self.matching(self.extract_feat(inputs), files)
        samples = self._get_predictions(result, data_samples)
        for sample in samples if self.labels is not None else ():
            if 'gt_label' in sample:
                labels = self.labels.to(sample.gt_label.device)
                relevant = labels == sample.gt_label
                relevant &= sample.pred_score > -torch.inf
                sample.set_gt_score(relevant.float())
        return samples


def _add_encoder_prefix(state_dict, prefix, *_) -> None:
    """Load hook: add the encoder prefix to a classifier's parameters."""
    names = [name for name in state_dict if name.startswith(prefix)]
    inner = [name.removeprefix(prefix) for name in names]
    if any(name.startswith(ENCODER) for name in inner):
        return
    for name, names_inside in zip(names, inner, strict=True):
        if names_inside.startswith(('backbone.', 'neck.', 'head.')):
            state_dict[f'{prefix}{ENCODER}{names_inside}'] = state_dict.pop(
                name
            )
