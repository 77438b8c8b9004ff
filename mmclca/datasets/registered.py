# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Import all datasets, samplers and transforms, which registers them."""

# hides a line that mmpretrain.datasets prints
import mmclca.registry  # noqa: F401, so before mmpretrain.datasets

from .batches import match_by_name
from .class_folders import ClassFolders, ImageNetV2
from .image_cache import CacheImages
from .levels import CoarseCIFAR100, CoarseDataset, INaturalist
from .load_photo import LoadPhoto
from .samplers import ClampedBatchSampler, MinLengthSampler, RepeatAugSampler
from .ultra_fgvc import UltraFGVC

__all__ = [
    'CacheImages',
    'ClassFolders',
    'ClampedBatchSampler',
    'CoarseCIFAR100',
    'CoarseDataset',
    'INaturalist',
    'ImageNetV2',
    'LoadPhoto',
    'MinLengthSampler',
    'RepeatAugSampler',
    'UltraFGVC',
    'match_by_name',
]
