# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A grid of runs, read from a small Python file, and checks of its inputs."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from itertools import chain, product
from pathlib import Path

import torch
from mmengine.config import Config
from mmengine.registry import init_default_scope

from mmclca.building import config_errors
from mmclca.checkpoints.opening import open_checkpoint
from mmclca.configs import open_config
from mmclca.datasets import match_by_name
from mmclca.errors import Error
from mmclca.models import list_methods
from mmclca.registry import DATASETS, MODELS
from mmclca.utils.messages import check_choice, check_integer, check_number

from . import compose as parts
from .compose import Cell

# lists in a grid, in the order of Cell's fields
LISTS = (
    *('datasets', 'backbones', 'methods', 'keep_rates'),
    *('sizes', 'clca', 'seeds'),
)
OPTIONAL = dict(variant='', recipe=parts.RECIPE, options={})
FILE_ONLY = dict(
    blocks=[{}], weights={}, config_dirs=[], keep_checkpoints=False
)
# block settings passed to compose with the cell
COMPOSE_KEYS = ('recipe', 'options', 'weights', 'folders')


@dataclass
class Grid:
    """Cells of a sweep with their arguments for ``compose``."""

    cells: dict[Cell, dict]
    keep_checkpoints: bool

    def configs(self) -> dict[Cell, Config]:
        """Compose the config of each cell."""
        return {
            cell: parts.compose(cell, **own)
            for cell, own in self.cells.items()
        }


def read_grid(path: str | Path) -> Grid:
    """Read a grid file.

    The file lists ``datasets``, ``backbones``, ``methods``, ``keep_rates``,
    ``sizes``, ``clca`` (values in ``ABLATIONS``) and ``seeds``; every
    combination is a cell. ``blocks`` is a list of dicts with these keys; each
    block makes its own combinations, with defaults from the file. ``recipe``
    names another schedule, ``options`` changes settings like
    ``--cfg-options``, and ``variant`` distinguishes cells with different
    recipes or options. ``config_dirs`` lists folders with user base configs,
    relative to the file. Names starting with ``_`` are private.

    Cells are sorted by seed, so an interrupted sweep has complete seeds.
    Raises an Error with all errors in the file.
    """
    path = Path(path)
    content = open_config(path).to_dict()
    content = {k: v for k, v in content.items() if not k.startswith('_')}
    whole = {k: content.pop(k, v) for k, v in FILE_ONLY.items()}
    named = whole['config_dirs']
    named = [named] if isinstance(named, str) else named
    folders = tuple(path.parent / name for name in named)
    shared = dict(weights=whole['weights'], folders=folders)
    blocks = [OPTIONAL | content | block | shared for block in whole['blocks']]
    for block in blocks:
        block['options'] = content.get('options', {}) | block['options']
    wrong = [
        *_unknown((*LISTS, *OPTIONAL, *FILE_ONLY), 'the file', content),
        *_unknown((*LISTS, *OPTIONAL), 'blocks', chain(*whole['blocks'])),
        *(f'config_dirs: no folder {f}' for f in folders if not f.is_dir()),
        *(line for block in blocks for line in _problems(block)),
    ]
    cells = [] if wrong else [pair for b in blocks for pair in _cells(b)]
    wrong += [
        f'{name} appears {count} times: set a variant in one of its blocks'
        for name, count in Counter(cell.name for cell, _ in cells).items()
        if count > 1
    ]
    if wrong:
        listed = '\n  '.join(dict.fromkeys(wrong))
        raise Error(f'{path} has errors:\n  {listed}')
    cells.sort(key=lambda pair: pair[0].seed)
    return Grid(dict(cells), whole['keep_checkpoints'])


def _cells(block: dict) -> Iterator[tuple[Cell, dict]]:
    """Yield the cells of a block, with their arguments for ``compose``."""
    own = {name: block[name] for name in COMPOSE_KEYS}
    for values in product(*(block[name] for name in LISTS)):
        yield Cell(*values, block['variant']), own


def _problems(block: dict) -> list[str]:
    """List all errors in a block."""
    wrong = [
        f'{name}: expected a list with at least one value, {name} = [...]'
        for name in LISTS
        if not (isinstance(block.get(name), list | tuple) and block[name])
    ]
    if wrong:
        return wrong
    folders, rates = block['folders'], block['keep_rates']
    wrong = [
        *_missing('datasets', parts.DATASETS, block['datasets'], folders),
        *_missing('backbones', parts.MODELS, block['backbones'], folders),
        *_missing('recipe', parts.RECIPES, [block['recipe']], folders),
        *_missing('weights', parts.MODELS, block['weights'], folders),
        # check methods last: the base configs above may register some
        *_unknown([parts.NONE, *list_methods()], 'methods', block['methods']),
        *_unknown(parts.ABLATIONS, 'clca', block['clca']),
        *_refused(partial(check_number, 1e-6, 1), 'keep_rates', rates),
        *_refused(check_integer, 'sizes', block['sizes']),
        *_refused(partial(check_integer, 0), 'seeds', block['seeds']),
    ]
    if parts.NONE in block['methods'] and set(rates) != {1}:
        wrong.append(
            f'keep_rates: method {parts.NONE!r} keeps all tokens: put it in a '
            'separate block with keep_rates = [1.0]'
        )
    if not re.fullmatch(r'[\w.-]*', block['variant']):
        wrong.append(f'variant={block["variant"]!r}: use letters, digits, .-_')
    return wrong


def _unknown(known: Collection, name: str, values: Iterable) -> Iterator[str]:
    return _refused(partial(check_choice, known), name, values)


def _refused(check: Callable, name: str, values: Iterable) -> Iterator[str]:
    """Describe the values that a check refuses."""
    for value in values:
        try:
            check(**{name: value})
        except ValueError as error:
            yield str(error)


def _missing(
    where: str, kind: str, names: Iterable, folders: tuple[Path, ...]
) -> Iterator[str]:
    """Describe the base configs that cannot be found or read."""
    for name in names:
        try:
            parts.read(parts.find(kind, name, folders))
        except ValueError as error:
            yield f'{where}: {error}'


def check_inputs(configs: list[Config]) -> None:
    """Open weights and datasets of all cells and build their models.

    Remote weights are downloaded once here instead of in every cell. Raises a
    Error with all missing or wrong inputs and their number of uses.
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
        raise Error(f'sweep not started; missing or wrong inputs:\n  {listed}')


def _failures(attempt: Callable, things: list) -> Iterator[str]:
    """Describe the error of each distinct input that cannot be opened."""
    counts = Counter(map(repr, things))
    for text, thing in {repr(thing): thing for thing in things}.items():
        try:
            with config_errors():
                attempt(thing)
        except (Error, ImportError, OSError) as error:
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
