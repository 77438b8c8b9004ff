# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# before mmpretrain.datasets, to hide a line that it prints
from mmclca.registry import DATA_SAMPLERS

# isort: split
import logging
import math
from collections.abc import Iterator, Sized

import torch
from mmengine.dataset import DefaultSampler
from mmengine.logging import print_log
from mmpretrain.datasets import RepeatAugSampler as _RepeatAugSampler
from torch.utils.data import BatchSampler, Sampler

from mmclca.errors import Error
from mmclca.utils.messages import check_integer


@DATA_SAMPLERS.register_module()
class MinLengthSampler(DefaultSampler):
    """Sampler with a minimum image count per epoch.

    An epoch of a few photos would be a single step, too short for a schedule
    in epochs. This sampler repeats a small dataset within an epoch, each time
    in a new order.

    Args:
        dataset (Sized): The dataset.
        min_samples (int): Minimum number of images per epoch, over all
            processes.
        shuffle (bool): Whether the order is random. Defaults to True.
        seed (int, optional): Random seed. Defaults to None: shared by all
            processes.

    Raises:
        Error: If ``min_samples`` is not positive.
    """

    def __init__(
        self,
        dataset: Sized,
        min_samples: int,
        shuffle: bool = True,
        seed: int | None = None,
    ):
        check_integer(min_samples=min_samples)
        super().__init__(dataset, shuffle, seed)
        wanted = max(len(dataset), min_samples)
        self.num_samples = math.ceil(wanted / self.world_size)
        self.total_size = self.num_samples * self.world_size

    def __iter__(self) -> Iterator[int]:
        """Iterate over the positions of this process."""
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        positions, size = [], len(self.dataset)
        while len(positions) < self.total_size:
            order = torch.randperm(size, generator=generator)
            positions += order.tolist() if self.shuffle else range(size)
        return iter(positions[self.rank : self.total_size : self.world_size])


@DATA_SAMPLERS.register_module()
class RepeatAugSampler(_RepeatAugSampler):
    """mmpretrain's ``RepeatAugSampler`` with the epoch length of timm.

    The image count per epoch is rounded down to a multiple of 256, for
    full batches; mmpretrain uses all images. A dataset of fewer than 256
    images is used completely.

    Args:
        dataset (Sized): The dataset.
        shuffle (bool): Whether the order is random. Defaults to True.
        num_repeats (int): Times that each image is in an epoch. Defaults to
            3.
        seed (int, optional): Random seed. Defaults to None: shared by all
            processes.
    """

    def __init__(
        self,
        dataset: Sized,
        shuffle: bool = True,
        num_repeats: int = 3,
        seed: int | None = None,
    ):
        super().__init__(dataset, shuffle, num_repeats, seed)
        full_batches = len(self.dataset) // 256 * 256
        if full_batches:
            self.num_selected_samples = full_batches // self.world_size


@DATA_SAMPLERS.register_module()
class ClampedBatchSampler(BatchSampler):
    """Batch sampler with a reduced batch size for small datasets.

    With ``drop_last``, a dataset smaller than the batch would give no batch
    and training would do nothing. This sampler reduces the batch size to the
    number of images per process, and logs a warning.

    Use it as ``batch_sampler`` of a dataloader without ``drop_last``::

        train_dataloader = dict(
            batch_size=32,
            sampler=dict(type='DefaultSampler', shuffle=True),
            batch_sampler=dict(type='mmclca.ClampedBatchSampler'))

    Args:
        sampler (Sampler): Sampler with a length, for one process.
        batch_size (int): Images per batch and process.
        drop_last (bool): Whether to skip an incomplete last batch. Defaults
            to True.

    Raises:
        Error: If the dataset is empty.
    """

    def __init__(
        self, sampler: Sampler, batch_size: int, drop_last: bool = True
    ):
        # torch declares the base class without a length
        share = len(sampler)  # type: ignore[arg-type]
        if share == 0:
            raise Error('the dataset is empty; check data_root and ann_file')
        if share < batch_size:
            print_log(
                f'batch_size={batch_size} exceeds the {share} images per '
                f'process; training with batches of {share}.',
                logger='current',
                level=logging.WARNING,
            )
        super().__init__(sampler, min(batch_size, share), drop_last)
