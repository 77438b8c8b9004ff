# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What would stop cells, found for all of them before the first."""

from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path

import torch
from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmengine.runner import CheckpointLoader

from mmclca.checkpoints.error import CheckpointError
from mmclca.datasets import UltraFGVC
from mmclca.registry import DATASETS, MODELS

from .cell import Cell
from .identity import config_hash
from .results import OTHERWISE, read_result

# what data sets, models and checkpoints raise at bad input
BAD_INPUT = (
    AssertionError,
    CheckpointError,
    KeyError,
    OSError,
    TypeError,
    ValueError,
)


def check_inputs(configs: dict[Cell, Config]) -> None:
    """Open the weights and data of all cells and build their models.

    Weights that lie elsewhere are fetched, once and not by every cell.

    Args:
        configs (dict[Cell, Config]): Config of each cell that is to run.

    Raises:
        ValueError: Lists what is missing or wrong, and how many cells need
            it.
    """
    init_default_scope('mmpretrain')
    cfgs = list(configs.values())
    loaders = [
        loader
        for cfg in cfgs
        for loader in (cfg.train_dataloader, cfg.test_dataloader)
    ]
    problems = [
        *_failures(_load, [cfg.load_from for cfg in cfgs]),
        *_failures(_open_images, [loader.dataset for loader in loaders]),
        *_failures(_build, [cfg.model for cfg in cfgs]),
    ]
    if problems:
        listed = '\n  '.join(problems)
        raise ValueError(f'nothing is run, for cells need:\n  {listed}')


def check_results(root: Path, configs: dict[Cell, Config]) -> None:
    """Refuse a folder with results of other configs.

    Args:
        root (Path): Folder of the sweep.
        configs (dict[Cell, Config]): Config of each cell.

    Raises:
        ValueError: If cells have a result that their config did not lead to.
    """
    found = {cell: read_result(root / f'{cell.name}.json') for cell in configs}
    others = [
        cell.name
        for cell, result in found.items()
        if result and result['config_hash'] != config_hash(configs[cell])
    ]
    if others:
        raise ValueError(
            f'{len(others)} of the results in {root} are of other settings '
            f'than the grid says, the first {others[0]}.json. {OTHERWISE}'
        )


def _failures(attempt: Callable, things: list) -> Iterator[str]:
    """What is said of those of the things that cannot be had."""
    counts = Counter(map(repr, things))
    for text, thing in {repr(thing): thing for thing in things}.items():
        try:
            attempt(thing)
        except BAD_INPUT as error:
            yield f'{error} (needed {counts[text]} times)'


def _load(checkpoint: str | None) -> None:
    if checkpoint is not None:
        CheckpointLoader.load_checkpoint(checkpoint, map_location='cpu')


def _open_images(dataset: dict) -> None:
    """Open a data set, and see that its images are there."""
    while isinstance(dataset.get('dataset'), dict):  # that repeats another
        dataset = dataset['dataset']
    opened = DATASETS.build(dict(dataset, pipeline=[]))
    if isinstance(opened, UltraFGVC):  # it has looked for itself
        return
    images = map(opened.get_data_info, range(len(opened)))
    paths = [image['img_path'] for image in images if 'img_path' in image]
    missing = [path for path in paths if not Path(path).is_file()]
    if missing:
        raise FileNotFoundError(
            f'{len(missing)} of {len(paths)} images are missing, the first '
            f'{missing[0]}'
        )


def _build(model: dict) -> None:
    with torch.device('meta'):
        MODELS.build(deepcopy(model))  # mmpretrain fills in defaults
