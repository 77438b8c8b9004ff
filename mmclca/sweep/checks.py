# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Check the inputs of all cells before a sweep starts."""

from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path

import torch
from mmengine.config import Config
from mmengine.registry import init_default_scope

from mmclca.checkpoints.error import WRONG_INPUT
from mmclca.checkpoints.opening import open_checkpoint
from mmclca.datasets import match_by_name
from mmclca.registry import DATASETS, MODELS


def check_inputs(configs: list[Config]) -> None:
    """Open weights and datasets of all cells and build their models.

    Remote weights are downloaded once here instead of in every cell. Raises a
    ValueError with all missing or wrong inputs and their number of uses.
    """
    init_default_scope('mmpretrain')
    loaders = [
        loader
        for cfg in configs
        for loader in (cfg.train_dataloader, cfg.test_dataloader)
    ]
    weights = [cfg.load_from for cfg in configs if cfg.load_from]
    problems = [
        *_failures(open_checkpoint, weights),
        *_failures(_open_images, [loader.dataset for loader in loaders]),
        *_failures(_build, [cfg.model for cfg in configs]),
    ]
    if problems:
        listed = '\n  '.join(problems)
        raise ValueError(
            f'sweep not started; missing or wrong inputs:\n  {listed}'
        )


def _failures(attempt: Callable, things: list) -> Iterator[str]:
    """Describe the error of each distinct input that cannot be opened."""
    counts = Counter(map(repr, things))
    for text, thing in {repr(thing): thing for thing in things}.items():
        try:
            attempt(thing)
        except WRONG_INPUT as error:
            yield f'{error} (used {counts[text]} times)'


def _open_images(dataset: dict) -> None:
    """Open a dataset and check that its images exist."""
    while isinstance(dataset.get('dataset'), dict):  # unwrap RepeatDataset
        dataset = dataset['dataset']
    opened = DATASETS.build(match_by_name(dict(dataset, pipeline=[])))
    images = map(opened.get_data_info, range(len(opened)))
    paths = [image['img_path'] for image in images if 'img_path' in image]
    missing = [path for path in paths if not Path(path).is_file()]
    if missing:
        raise FileNotFoundError(
            f'{len(missing)} of {len(paths)} images missing: {missing[0]}'
        )


def _build(model: dict) -> None:
    with torch.device('meta'):
        MODELS.build(deepcopy(model))  # mmpretrain adds defaults in place
