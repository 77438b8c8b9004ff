# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Check weights, datasets and models before a sweep starts."""

from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

from mmengine.config import Config
from mmengine.registry import Registry, init_default_scope

from mmclca.checkpoints.opening import open_checkpoint
from mmclca.datasets import match_by_name
from mmclca.errors import Error
from mmclca.registry import DATASETS, MODELS
from mmclca.utils.meta_device import on_meta_device


def check_inputs(configs: list[Config]) -> None:
    """Open weights and datasets of all runs and build their models.

    Remote weights are downloaded once here instead of in every run.

    Raises:
        Error: Lists all missing or wrong inputs and their number of uses.
    """
    init_default_scope('mmpretrain')
    weights = [cfg.load_from for cfg in configs if cfg.load_from]
    datasets = [
        loader.dataset
        for cfg in configs
        for loader in (cfg.train_dataloader, cfg.test_dataloader)
    ]
    problems = [
        *_list_failures(open_checkpoint, weights),
        *_list_failures(_open_images, datasets),
    ]
    # mmpretrain adds defaults in place
    models = [deepcopy(cfg.model) for cfg in configs]
    with on_meta_device():
        problems += _list_failures(partial(_build, MODELS), models)
    if problems:
        lines = '\n  '.join(problems)
        raise Error(f'sweep not started; missing or wrong inputs:\n  {lines}')


def _list_failures(attempt: Callable, inputs: list) -> Iterator[str]:
    """Describe the error of each distinct input that cannot be opened."""
    counts = Counter(map(repr, inputs))
    for name, value in {repr(value): value for value in inputs}.items():
        try:
            attempt(value)
        except (Error, OSError) as error:
            yield f'{error} (used {counts[name]} times)'


def _open_images(dataset: dict) -> None:
    """Open a dataset and check that its images exist."""
    while isinstance(dataset.get('dataset'), dict):  # unwrap RepeatDataset
        dataset = dataset['dataset']
    opened = _build(DATASETS, match_by_name(dict(dataset, pipeline=[])))
    images = map(opened.get_data_info, range(len(opened)))
    paths = [image['img_path'] for image in images if 'img_path' in image]
    missing = [path for path in paths if not Path(path).is_file()]
    if missing:
        raise FileNotFoundError(
            f'{len(missing)} of {len(paths)} images missing: {missing[0]}'
        )


def _build(registry: Registry, settings: Any) -> Any:
    """Build an object; mmengine and mmpretrain raise many errors."""
    try:
        return registry.build(settings)
    except OSError:
        raise
    except (
        AssertionError,
        AttributeError,
        ImportError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:
        raise Error(f'{settings.get("type")}: {error}') from error
