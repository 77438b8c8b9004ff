# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A grid of runs, read from a small Python file."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

from mmengine.config import Config

from mmclca.configs import open_config
from mmclca.errors import Error
from mmclca.models import list_methods
from mmclca.utils.messages import check_choice, check_integer, check_number

from .base_configs import DATASETS, MODELS, RECIPES, find, read
from .runs import ABLATIONS, NONE, RECIPE, Run, RunKey

# lists in a grid, and the field of RunKey with one of their values
LISTS = dict(
    datasets='dataset',
    backbones='backbone',
    methods='method',
    keep_rates='keep_rate',
    sizes='size',
    clca='clca',
    seeds='seed',
)
# other settings with their defaults; the second group not in blocks
OPTIONAL = dict(variant='', recipe=RECIPE, options={})
FILE_ONLY = dict(
    blocks=[{}], weights={}, config_dirs=[], keep_checkpoints=False
)


@dataclass(frozen=True)
class Grid:
    """Runs of a sweep, sorted by seed.

    Args:
        runs (list[Run]): The runs.
        keep_checkpoints (bool): Whether checkpoints stay after a run.
    """

    runs: list[Run]
    keep_checkpoints: bool

    def compose_configs(self) -> dict[RunKey, Config]:
        """Compose the config of each run."""
        return {run.key: run.compose() for run in self.runs}


@dataclass(frozen=True)
class Block:
    """Settings of a block, completed by those of the file.

    Args:
        settings (dict): Lists and options by name.
        weights (dict[str, str]): Checkpoints by backbone name.
        folders (tuple[Path, ...]): Folders of users with base configs.
    """

    settings: dict
    weights: dict[str, str]
    folders: tuple[Path, ...]

    def list_runs(self) -> Iterator[Run]:
        """Yield the runs, one per combination."""
        for values in product(*(self.settings[name] for name in LISTS)):
            fields = dict(zip(LISTS.values(), values, strict=True))
            yield Run.from_key(
                RunKey(**fields, variant=self.settings['variant']),
                self.settings['recipe'],
                self.settings['options'],
                self.weights,
                self.folders,
            )

    def list_problems(self) -> list[str]:
        """Describe all wrong settings."""
        settings = self.settings
        problems = [
            f'{name}: expected a list with at least one value, {name} = [...]'
            for name in LISTS
            if not isinstance(settings.get(name), list | tuple)
            or not settings[name]
        ]
        problems += _find_wrong_types(settings, OPTIONAL)
        if problems:
            return problems
        rates = settings['keep_rates']
        problems = [
            *self._list_missing('datasets', DATASETS, settings['datasets']),
            *self._list_missing('backbones', MODELS, settings['backbones']),
            *self._list_missing('recipe', RECIPES, [settings['recipe']]),
            *self._list_missing('weights', MODELS, self.weights),
            # check methods last: the base configs above may register some
            *_find_unknown(
                [NONE, *list_methods()], 'methods', settings['methods']
            ),
            *_find_unknown(ABLATIONS, 'clca', settings['clca']),
            *_list_refused(
                partial(check_number, 1e-6, 1), 'keep_rates', rates
            ),
            *_list_refused(check_integer, 'sizes', settings['sizes']),
            *_list_refused(
                partial(check_integer, 0), 'seeds', settings['seeds']
            ),
        ]
        if NONE in settings['methods'] and set(rates) != {1}:
            problems.append(
                f'keep_rates: method {NONE!r} keeps all tokens: put it in a '
                'separate block with keep_rates = [1.0]'
            )
        if not re.fullmatch(r'[\w.-]*', settings['variant']):
            problems.append(
                f'variant={settings["variant"]!r}: use letters, digits, .-_'
            )
        return problems

    def _list_missing(
        self, setting: str, role: str, names: Iterable[str]
    ) -> Iterator[str]:
        """Describe the base configs that cannot be found or read."""
        for name in names:
            try:
                read(find(role, name, self.folders))
            except (Error, OSError) as error:
                yield f'{setting}: {error}'


def read_grid(path: str | Path) -> Grid:
    """Read a grid file.

    The file lists ``datasets``, ``backbones``, ``methods``, ``keep_rates``,
    ``sizes``, ``clca`` (values in ``ABLATIONS``) and ``seeds``; every
    combination is a run. ``blocks`` is a list of dicts with these keys; each
    block makes its own combinations, with defaults from the file. ``recipe``
    names another schedule, ``options`` changes settings like
    ``--cfg-options``, and ``variant`` distinguishes runs with different
    recipes or options. ``config_dirs`` lists folders with user base configs,
    relative to the file. Names starting with ``_`` are private.

    Runs are sorted by seed, so an interrupted sweep has complete seeds.

    Raises:
        Error: Lists all errors in the file.
        OSError: If the file cannot be opened.
    """
    path = Path(path)
    content = open_config(path).to_dict()
    content = {k: v for k, v in content.items() if not k.startswith('_')}
    of_file = {k: content.pop(k, v) for k, v in FILE_ONLY.items()}
    if isinstance(of_file['config_dirs'], str):
        of_file['config_dirs'] = [of_file['config_dirs']]
    problems = [
        *_find_unknown((*LISTS, *OPTIONAL, *FILE_ONLY), 'the file', content),
        *_find_wrong_types(of_file, FILE_ONLY),
        *_find_wrong_types(content, dict(options={})),
    ]
    _refuse(path, problems)
    blocks = [block for block in of_file['blocks'] if isinstance(block, dict)]
    if len(blocks) < len(of_file['blocks']):
        problems.append('blocks: expected a list of dicts')
    for block in blocks:
        problems += _find_unknown((*LISTS, *OPTIONAL), 'blocks', block)
        problems += _find_wrong_types(block, dict(options={}))
    folders = tuple(path.parent / name for name in of_file['config_dirs'])
    problems += [
        f'config_dirs: no folder {folder}'
        for folder in folders
        if not folder.is_dir()
    ]
    _refuse(path, problems)
    completed = [
        Block(
            OPTIONAL
            | content
            | block
            | dict(
                options=content.get('options', {}) | block.get('options', {})
            ),
            of_file['weights'],
            folders,
        )
        for block in blocks
    ]
    _refuse(path, [x for block in completed for x in block.list_problems()])
    runs = [run for block in completed for run in block.list_runs()]
    names = Counter(run.key.name for run in runs)
    _refuse(
        path,
        [
            f'{name} appears {count} times: set a variant in one of its blocks'
            for name, count in names.items()
            if count > 1
        ],
    )
    runs.sort(key=lambda run: run.key.seed)
    return Grid(runs, of_file['keep_checkpoints'])


def _refuse(path: Path, problems: list[str]) -> None:
    if problems:
        lines = '\n  '.join(dict.fromkeys(problems))
        raise Error(f'{path} has errors:\n  {lines}')


def _find_wrong_types(settings: dict, defaults: dict) -> list[str]:
    """Describe the settings whose type differs from that of the default."""
    problems = []
    for name, default in defaults.items():
        value = settings.get(name, default)
        allowed = list | tuple if isinstance(default, list) else type(default)
        if not isinstance(value, allowed):
            problems.append(
                f'{name}={value!r}: expected a {type(default).__name__}'
            )
    return problems


def _find_unknown(
    choices: Collection[str], name: str, values: Iterable
) -> Iterator[str]:
    return _list_refused(partial(check_choice, choices), name, values)


def _list_refused(
    check: Callable, name: str, values: Iterable
) -> Iterator[str]:
    """Describe the values that a check refuses."""
    for value in values:
        try:
            check(**{name: value})
        except Error as error:
            yield str(error)
