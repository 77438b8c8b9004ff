# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A grid of runs, read from a small Python file."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import product
from pathlib import Path

from mmengine.config import Config

from mmclca.benchmark.candidates import METHODS

from .cell import ABLATIONS, Cell
from .pieces import backbones, datasets

# what a grid lists, and the argument of Cell that each value becomes
LISTS = dict(
    datasets='dataset',
    backbones='backbone',
    methods='method',
    keep_rates='keep_rate',
    sizes='size',
    clca='clca',
    seeds='seed',
)
MORE = ('variant', 'options')
OF_THE_WHOLE = ('blocks', 'weights', 'keep_checkpoints')


@dataclass
class Grid:
    """The cells of a sweep and what they share.

    Args:
        cells (dict[Cell, dict]): The cells, in the order in which they are
            to run, and the settings of each that are changed, by dotted name.
        weights (dict[str, str]): Checkpoints of backbones that are not to
            start from the one that their config names.
        keep_checkpoints (bool): Whether a finished cell keeps its last
            checkpoint.
    """

    cells: dict[Cell, dict]
    weights: dict[str, str] = field(default_factory=dict)
    keep_checkpoints: bool = False


def read_grid(path: str | Path) -> Grid:
    """Read a grid.

    The file lists ``datasets``, ``backbones``, ``methods``, ``keep_rates``,
    ``sizes``, ``clca`` (of ``ABLATIONS``) and ``seeds``; every combination is
    a cell. ``blocks``, a list of dicts of the same, makes several such
    products; what they leave out is as in the file. ``options`` changes
    settings as ``--cfg-options`` does, and ``variant`` is a word for cells
    that differ by options alone.

    All cells of a seed come before those of the next, so that a sweep that is
    stopped has whole seeds.

    Args:
        path (str | Path): The file.

    Raises:
        FileNotFoundError: If there is none.
        ValueError: If it lists what does not exist; names all that is wrong
            and what there is.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f'there is no grid {path}')
    content = Config.fromfile(path).to_dict()
    whole = {k: content.pop(k) for k in OF_THE_WHOLE if k in content}
    blocks = whole.pop('blocks', [{}])
    wrong = _unknown('the file', content, (*LISTS, *MORE, *OF_THE_WHOLE))
    for block in blocks:
        wrong += _unknown('blocks', block, (*LISTS, *MORE))
    blocks = [_merged(content, block) for block in blocks]
    wrong += [problem for block in blocks for problem in _problems(block)]
    wrong += _unknown('weights', whole.get('weights', {}), backbones())
    wrong = wrong or _twins(blocks)
    if wrong:
        listed = '\n  '.join(dict.fromkeys(wrong))
        raise ValueError(f'{path} is no grid that can run:\n  {listed}')
    cells = [(c, block['options']) for block in blocks for c in _cells(block)]
    cells.sort(key=lambda pair: pair[0].seed)  # else in the file's order
    return Grid(dict(cells), **whole)


def _merged(content: dict, block: dict) -> dict:
    """A block with what it leaves out."""
    options = {**content.get('options', {}), **block.get('options', {})}
    return {'variant': '', **content, **block, 'options': options}


def _cells(block: dict) -> list[Cell]:
    return [
        Cell(**dict(zip(LISTS.values(), values, strict=True)), variant=word)
        for word in [block['variant']]
        for values in product(*(block[name] for name in LISTS))
    ]


def _problems(block: dict) -> list[str]:
    """All that is wrong with a block."""
    missing = [name for name in LISTS if name not in block]
    if missing:
        return [f'nothing says which {", ".join(missing)}']
    unlisted = [k for k in LISTS if not isinstance(block[k], list | tuple)]
    if unlisted:
        return [f'{", ".join(unlisted)}: write a list, as [...]']
    wrong = [f'{name} is empty' for name in LISTS if not block[name]]
    known = dict(
        datasets=datasets(),
        backbones=backbones(),
        methods=METHODS,
        clca=ABLATIONS,
    )
    for name, names in known.items():
        wrong += _unknown(name, block[name], names)
    wrong += [
        f'keep_rates: {rate!r} is no number above 0 and at most 1'
        for rate in block['keep_rates']
        if not (type(rate) in (int, float) and 0 < rate <= 1)
    ]
    wrong += [
        f'{name}: {value!r} is no positive integer'
        for name in ('sizes', 'seeds')
        for value in block[name]
        if type(value) is not int or value < (name == 'sizes')
    ]
    if not re.fullmatch(r'[\w.-]*', block['variant']):
        wrong.append(f'variant: {block["variant"]!r} is no word')
    return wrong


def _unknown(where: str, names: Iterable, known: Iterable[str]) -> list[str]:
    """What is said of names that are not known."""
    known = list(known)
    said = []
    for name in names:
        if name not in known:
            close = get_close_matches(str(name), known, n=1, cutoff=0.4)
            hint = f' (do you mean {close[0]}?)' if close else ''
            there = ', '.join(known)
            said.append(f'{where}: no {name!r}{hint}; there are {there}')
    return said


def _twins(blocks: list[dict]) -> list[str]:
    """What is said of cells that two blocks make."""
    counts = Counter(cell.name for block in blocks for cell in _cells(block))
    return [
        f'{name} comes {count} times: give one of its blocks a variant'
        for name, count in counts.items()
        if count > 1
    ]
