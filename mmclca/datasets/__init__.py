# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from importlib import import_module

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


def __getattr__(name: str):
    # lazy, because photos are checked before torch is imported
    if name in __all__:
        return getattr(import_module('mmclca.datasets.registered'), name)
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')


def __dir__() -> list[str]:
    return [*globals(), *__all__]  # for completion and Sphinx
