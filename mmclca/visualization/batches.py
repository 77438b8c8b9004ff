# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Images of a data set, as a model reads them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from mmengine.config import Config
from mmengine.dataset import BaseDataset, pseudo_collate
from mmengine.registry import init_default_scope
from mmpretrain.registry import DATASETS
from torch import Tensor, nn
from torch.utils.data import DataLoader, Subset


@dataclass
class Batch:
    """Some images of a data set.

    Args:
        images (Tensor): Preprocessed, (B, 3, H, W).
        labels (list[int]): Their classes.
        paths (list[str]): Their files.
    """

    images: Tensor
    labels: list[int]
    paths: list[str]


def dataset_of(cfg: Config, split: str = 'test', **changes) -> BaseDataset:
    """A data set of a config.

    Args:
        cfg (Config): The config.
        split (str): 'train', 'val' or 'test'. Defaults to 'test'.
        **changes: Settings of the data set that take the place of the
            config's, such as ``pipeline=[]``, which reads no image.

    Raises:
        ValueError: If the config has none of that name.
    """
    loader = cfg.get(f'{split}_dataloader') or {}
    if 'dataset' not in loader:
        raise ValueError(
            f'the config has no {split}_dataloader with a dataset: give one '
            'that has, or name images where the tool takes some'
        )
    init_default_scope('mmpretrain')
    return DATASETS.build({**loader['dataset'], **changes})


def first_of_each_class(
    labels: Sequence[int], most: int, classes: Sequence[int] | None = None
) -> list[int]:
    """Positions of the first images of each class.

    Args:
        labels (Sequence[int]): The class of each image.
        most (int): Images of a class.
        classes (Sequence[int], optional): The classes wanted.
            Defaults to None: all.
    """
    labels = np.asarray(labels)
    wanted = np.unique(labels) if classes is None else classes
    found = [np.flatnonzero(labels == label)[:most] for label in wanted]
    return np.concatenate(found).tolist() if len(found) else []


def batches(
    model: nn.Module, dataset, indices: Sequence[int], batch_size: int
) -> Iterator[Batch]:
    """Yield images of a data set as a model reads them.

    Args:
        model (nn.Module): A classifier; its preprocessor is used.
        dataset (BaseDataset): The data set.
        indices (Sequence[int]): Which of its images, in this order.
        batch_size (int): Images at a time.
    """
    chosen = Subset(dataset, indices)
    for packed in DataLoader(chosen, batch_size, collate_fn=pseudo_collate):
        data = model.data_preprocessor(packed, False)
        samples = data['data_samples']
        yield Batch(
            data['inputs'],
            [int(sample.gt_label) for sample in samples],
            [sample.get('img_path', '') for sample in samples],
        )
