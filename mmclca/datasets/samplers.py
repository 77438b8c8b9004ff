# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import logging
import math
from collections.abc import Iterator

import torch
from mmengine.dataset import DefaultSampler
from mmengine.logging import print_log
from mmpretrain.datasets import RepeatAugSampler as _RepeatAugSampler
from torch.utils.data import BatchSampler

from mmclca.registry import DATA_SAMPLERS
from mmclca.utils.messages import integer


@DATA_SAMPLERS.register_module()
class AtLeastSampler(DefaultSampler):
    """Draws at least some number of images an epoch, however few there are.

    Epochs of a folder of a few photographs would be one step long, and a
    schedule in epochs no training at all. Here such a folder is gone through
    several times in what counts as one epoch, each time in another order.

    Args:
        dataset (Sized): The data set.
        min_samples (int): Images an epoch at least, over all processes.
        **kwargs: ``shuffle`` and ``seed`` of mmengine's ``DefaultSampler``.

    Raises:
        ValueError: If ``min_samples`` is not positive.
    """

    def __init__(self, dataset, min_samples: int, **kwargs):
        integer(min_samples=min_samples)
        super().__init__(dataset, **kwargs)
        wanted = max(len(dataset), min_samples)
        self.num_samples = math.ceil(wanted / self.world_size)
        self.total_size = self.num_samples * self.world_size

    def __iter__(self) -> Iterator[int]:
        """Positions of images of one process."""
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        found, size = [], len(self.dataset)
        while len(found) < self.total_size:
            order = torch.randperm(size, generator=generator)
            found += order.tolist() if self.shuffle else range(size)
        return iter(found[self.rank : self.total_size : self.world_size])


@DATA_SAMPLERS.register_module()
class RepeatAugSampler(_RepeatAugSampler):
    """mmpretrain's ``RepeatAugSampler`` with epochs as long as timm's.

    A process draws its part of the largest multiple of 256 images that the
    set has, so that batches are full; mmpretrain's rounds up to all images.
    A set of fewer than 256 is drawn whole.

    Args:
        *args: See mmpretrain's.
        **kwargs: See there.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        whole = len(self.dataset) // 256 * 256
        if whole:
            self.num_selected_samples = whole // self.world_size


@DATA_SAMPLERS.register_module()
class ClampedBatchSampler(BatchSampler):
    """A batch sampler that never asks for more images than there are.

    With ``drop_last`` a set smaller than the batch gives no batch at all, and
    training would do nothing. Here the batch shrinks to the set (in
    distributed training to this process's share of it), and the log says so.

    Use it as ``batch_sampler`` of a dataloader, whose own ``drop_last`` has
    to stay unset::

        train_dataloader = dict(
            batch_size=32,
            sampler=dict(type='DefaultSampler', shuffle=True),
            batch_sampler=dict(type='mmclca.ClampedBatchSampler'))

    Args:
        sampler (Sampler): Gives the indices of one process, and has a length.
        batch_size (int): Images a batch and process.
        drop_last (bool): Whether to leave out the last batch where it is
            smaller than the others. Defaults to True.

    Raises:
        ValueError: If there is no image at all.
    """

    def __init__(self, sampler, batch_size, drop_last=True):
        share = len(sampler)
        if share == 0:
            raise ValueError(
                'the dataset is empty; check data_root and ann_file'
            )
        if share < batch_size:
            print_log(
                f'batch_size={batch_size} exceeds the {share} images per '
                f'process; training with batches of {share}.',
                logger='current',
                level=logging.WARNING,
            )
        super().__init__(sampler, min(batch_size, share), drop_last)
