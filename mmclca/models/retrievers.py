# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Features of images, and a retriever that compares them."""

import os
from collections.abc import Iterable

import numpy as np
import torch
import torch.nn.functional as F
from mmengine.dataset import BaseDataset
from mmpretrain.models import ImageToImageRetriever
from mmpretrain.structures import DataSample
from torch import Tensor
from torch.utils.data import DataLoader

from mmclca.registry import MODELS
from mmclca.utils.messages import one_of

from .classifiers import STAGES, feature_of


def cosine_similarity(queries: Tensor, gallery: Tensor) -> Tensor:
    """Cosine of the angle between each query and each gallery feature.

    Args:
        queries (Tensor): Features (N, C).
        gallery (Tensor): Features (M, C).

    Returns:
        Tensor: (N, M), in -1 to 1. Nothing of size N x M x C is made, and no
        copy of the gallery.
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
    """Scores of classes by a vote of the k nearest images.

    A vote weighs exp(similarity / temperature): Wu et al., `Unsupervised
    Feature Learning via Non-Parametric Instance Discrimination
    <https://arxiv.org/abs/1805.01978>`_ (2018), section 3.4.

    Args:
        similarity (Tensor): (N, M), of cosines.
        labels (Tensor): Classes of the gallery (M,).
        num_classes (int): Number of classes.
        k (int, optional): How many vote; all, where there are fewer, or
            for None. Defaults to 5.
        temperature (float): Small: the nearest decides. Defaults to 0.07.

    Returns:
        Tensor: (N, num_classes), each row with a sum of 1.
    """
    voters = labels.expand_as(similarity)
    if k is not None:
        k = min(k, similarity.shape[1])
        similarity, order = similarity.topk(k, dim=1)
        voters = labels[order]
    votes = (similarity / temperature).softmax(dim=1)
    # not len(votes), of which an export makes a constant
    scores = votes.new_zeros(votes.shape[0], num_classes)
    return scores.scatter_add_(1, voters, votes)


def files_of(paths: Iterable[str]) -> Tensor:
    """Number the files of images (M,), once links are followed.

    The numbers hold in this process; names would take gigabytes of millions.
    """
    numbers = (hash(os.path.realpath(path)) for path in paths)
    return torch.from_numpy(np.fromiter(numbers, np.int64))


def hide_same_files(
    similarity: Tensor, paths: Iterable[str | None], files: Tensor
) -> None:
    """Put minus infinity where a query and a gallery image are one file.

    Args:
        similarity (Tensor): (N, M), changed in place.
        paths (Iterable[str | None]): Files of the queries.
        files (Tensor): Of the gallery (M,), see :func:`files_of`.
    """
    for row, path in zip(similarity, paths, strict=True):
        if path is not None:
            row[files == hash(os.path.realpath(path))] = -torch.inf


ENCODER = 'image_encoder.'


@MODELS.register_module()
class TokenReductionRetriever(ImageToImageRetriever):
    """Finds images by the features of a classifier.

    mmpretrain's retriever, that

    - takes the features that the classifier's last layer reads, where
      mmpretrain's takes its class scores;
    - loads the checkpoint of a classifier as it is;
    - knows the classes of the gallery, so that a data set with labels can be
      evaluated: each query gets a ``gt_score``, 1 for images of its class;
    - never finds the query itself, a file that the gallery has too, where a
      data set says which file that is (``ImageRetrievalInferencer`` does not);
    - compares in the memory of N x M numbers, not of N x M x C.

    Args:
        image_encoder (dict): Config of a classifier.
        prototype (dict | str | Tensor | DataLoader): The gallery, as in
            ``ImageToImageRetriever``. Classes and files are known only with
            a data set, that of a ``dict`` or ``DataLoader``.
        stage (str): 'pre_logits' for the features that the last layer of the
            head reads, those of CLA or the last CLS without it; 'backbone'
            for the last CLS in any case. Defaults to 'pre_logits'.
        **kwargs: ``data_preprocessor`` (that of ``image_encoder`` is not
            used), ``topk``, how many images are in ``pred_label`` (-1, the
            default, for all), and ``init_cfg``, of ``ImageToImageRetriever``.

    Raises:
        ValueError: If the stage is unknown; when the gallery is prepared, if
            it is empty, or its features are of another size or not finite.
    """

    def __init__(
        self,
        image_encoder: dict,
        prototype: dict | str | Tensor | DataLoader,
        stage: str = 'pre_logits',
        **kwargs,
    ):
        one_of(STAGES, stage=stage)
        super().__init__(
            image_encoder, prototype, similarity_fn=cosine_similarity, **kwargs
        )
        self.stage = stage
        self.labels = None  # of the gallery
        self.files = None  # of the gallery
        self._register_load_state_dict_pre_hook(_add_encoder_prefix)

    def extract_feat(self, inputs: Tensor) -> Tensor:
        """Map images (B, 3, H, W) to features (B, C)."""
        return feature_of(self.image_encoder, inputs, self.stage)

    def loss(self, inputs: Tensor, data_samples: list[DataSample]) -> dict:
        """Losses of the classifier."""
        return self.image_encoder.loss(inputs, data_samples)

    def _get_prototype_vecs_from_dataloader(self, data_loader) -> Tensor:
        dataset = data_loader.dataset
        if len(dataset) == 0:
            raise ValueError(
                'the gallery is empty; set prototype= to a dataset with images'
            )
        self._index_gallery(dataset)
        return super()._get_prototype_vecs_from_dataloader(data_loader)

    def _index_gallery(self, dataset: BaseDataset) -> None:
        """Note the classes and the files of the gallery."""
        infos = [dataset.get_data_info(i) for i in range(len(dataset))]
        if 'gt_label' in infos[0]:
            self.labels = torch.tensor([int(i['gt_label']) for i in infos])
        self.files = files_of(info['img_path'] for info in infos)

    def prepare_prototype(self) -> None:
        """Compute the features of the gallery."""
        self.labels = self.files = None
        if isinstance(self.prototype, dict):
            # mmengine cannot serialize a dataset without images
            self.prototype['dataset']['serialize_data'] = False
        super().prepare_prototype()
        broken = (~self.prototype_vecs.isfinite()).any(dim=1).sum()
        if broken:
            raise ValueError(
                f'the features of {broken} of {len(self.prototype_vecs)} '
                'gallery images are NaN or infinite; use other weights'
            )

    def matching(
        self, inputs: Tensor, files: list[str | None] | None = None
    ) -> dict:
        """Similarities to the gallery.

        Args:
            inputs (Tensor): Features (B, C).
            files (list[str | None], optional): Their files, to be excluded
                from the results. Defaults to None.
        """
        if inputs.shape[1] != self.prototype_vecs.shape[1]:
            raise ValueError(
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
                _set_relevance(sample, self.labels)
        return samples


def _set_relevance(sample: DataSample, labels: Tensor) -> None:
    """Tell a query which images of the gallery are of its class."""
    relevant = labels.to(sample.gt_label.device) == sample.gt_label
    relevant &= sample.pred_score > -torch.inf
    sample.set_gt_score(relevant.float())


def _add_encoder_prefix(state_dict, prefix, *_) -> None:
    """Load hook: a classifier's parameters are those of the encoder."""
    names = [name for name in state_dict if name.startswith(prefix)]
    inner = [name.removeprefix(prefix) for name in names]
    if any(name.startswith(ENCODER) for name in inner):
        return
    for name, rest in zip(names, inner, strict=True):
        if rest.startswith(('backbone.', 'neck.', 'head.')):
            state_dict[f'{prefix}{ENCODER}{rest}'] = state_dict.pop(name)
