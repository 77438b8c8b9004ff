# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A grid of runs, read from a small Python file."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, product
from pathlib import Path

from mmengine.config import Config

from mmclca.models import list_methods
from mmclca.utils.messages import integer, number, one_of

from . import compose as parts
from .compose import Cell

# what a grid lists, in the order of the arguments of Cell
LISTS = (
    *('datasets', 'backbones', 'methods', 'keep_rates'),
    *('sizes', 'clca', 'seeds'),
)
MORE = dict(variant='', recipe=parts.RECIPE, options={})
OF_THE_WHOLE = dict(
    blocks=[{}], weights={}, config_dirs=[], keep_checkpoints=False
)
# what a config takes of a block besides the cell
OWN = ('recipe', 'options', 'weights', 'folders')


@dataclass
class Grid:
    """The cells of a sweep."""

    cells: dict[Cell, dict]
    keep_checkpoints: bool

    def configs(self) -> dict[Cell, Config]:
        """Return the whole config of each cell.

        Raises:
            ValueError: See :func:`mmclca.sweep.compose.compose`.
        """
        return {
            cell: parts.compose(cell, **own)
            for cell, own in self.cells.items()
        }


def read_grid(path: str | Path) -> Grid:
    """Read a grid.

    The file lists ``datasets``, ``backbones``, ``methods``, ``keep_rates``,
    ``sizes``, ``clca`` (of ``ABLATIONS``) and ``seeds``; every combination is
    a cell. ``blocks``, a list of dicts of the same, makes several such
    products; what they leave out is as in the file. ``recipe`` names another
    schedule, ``options`` changes settings as ``--cfg-options`` does, and
    ``variant`` is a word for cells that differ by these alone.
    ``config_dirs`` are folders with base configs of the user's own, relative
    to the file. A name that starts with ``_`` is for the file itself.

    All cells of a seed come before those of the next, so that a sweep that is
    stopped has whole seeds.

    Raises:
        FileNotFoundError: If there is none.
        ValueError: If it lists what does not exist; names all that is wrong
            and what there is.
    """
    path = Path(path)
    content = Config.fromfile(path).to_dict()
    content = {k: v for k, v in content.items() if not k.startswith('_')}
    whole = {k: content.pop(k, v) for k, v in OF_THE_WHOLE.items()}
    named = whole['config_dirs']
    named = [named] if isinstance(named, str) else named
    folders = tuple(path.parent / name for name in named)
    shared = dict(weights=whole['weights'], folders=folders)
    blocks = [MORE | content | block | shared for block in whole['blocks']]
    for block in blocks:
        block['options'] = content.get('options', {}) | block['options']
    wrong = [
        *_unknown((*LISTS, *MORE, *OF_THE_WHOLE), 'the file', content),
        *_unknown((*LISTS, *MORE), 'blocks', chain(*whole['blocks'])),
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
        raise ValueError(f'{path} has errors:\n  {listed}')
    cells.sort(key=lambda pair: pair[0].seed)
    return Grid(dict(cells), whole['keep_checkpoints'])


def _cells(block: dict) -> Iterator[tuple[Cell, dict]]:
    own = {name: block[name] for name in OWN}
    for values in product(*(block[name] for name in LISTS)):
        yield Cell(*values, block['variant']), own


def _problems(block: dict) -> list[str]:
    """List all that is wrong with a block."""
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
        # base configs have been read, which may register methods
        *_unknown([parts.NONE, *list_methods()], 'methods', block['methods']),
        *_unknown(parts.ABLATIONS, 'clca', block['clca']),
        *_refused(partial(number, 1e-6, 1), 'keep_rates', rates),
        *_refused(integer, 'sizes', block['sizes']),
        *_refused(partial(integer, 0), 'seeds', block['seeds']),
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
    return _refused(partial(one_of, known), name, values)


def _refused(check: Callable, name: str, values: Iterable) -> Iterator[str]:
    for value in values:
        try:
            check(**{name: value})
        except ValueError as error:
            yield str(error)


def _missing(
    where: str, kind: str, names: Iterable, folders: tuple[Path, ...]
) -> Iterator[str]:
    for name in names:
        try:
            parts.read(parts.find(kind, name, folders))
        except ValueError as error:
            yield f'{where}: {error}'
