# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from importlib import import_module

# lazy, because photos are checked before torch is imported
MODULES = dict(
    CacheImages='image_cache',
    ClassFolders='class_folders',
    ClampedBatchSampler='samplers',
    CoarseCIFAR100='levels',
    CoarseDataset='levels',
    INaturalist='levels',
    ImageNetV2='class_folders',
    LoadPhoto='load_photo',
    MinLengthSampler='samplers',
    RepeatAugSampler='samplers',
    UltraFGVC='ultra_fgvc',
    match_by_name='batches',
)
__all__ = [*MODULES]


def __getattr__(name: str):
    if name in MODULES:
        module = import_module(f'mmclca.datasets.{MODULES[name]}')
        return getattr(module, name)
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')


def __dir__() -> list[str]:
    return [*globals(), *__all__]  # for completion and Sphinx
