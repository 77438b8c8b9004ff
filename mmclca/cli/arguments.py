# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Command-line parser, and options shared by several commands."""

import argparse
import re
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any, NoReturn

from mmclca.errors import Error
from mmclca.utils.messages import printable


class Parser(argparse.ArgumentParser):
    """Parser with ``--debug``, which :func:`mmclca.cli.run` reads.

    Args:
        description (str): Docstring whose first paragraph describes the
            command. Defaults to ''.
        **options: ``argparse.ArgumentParser`` arguments.

    Attributes:
        advice (str): Advice after Ctrl-C.
    """

    advice = ''

    def __init__(self, description: str = '', **options):
        first, *_ = description.split('\n\n')
        super().__init__(description=' '.join(first.split()), **options)
        # argparse takes -1GMACs for an option
        self._negative_number_matcher = re.compile(r'-\.?\d')
        self.flag('--debug', 'show the full traceback of an error')

    def describe_setting(self, name: str, value: str | None) -> str | None:
        """Return the option that sets a setting, or None without one.

        ``overwrite`` and ``overwrite=True`` give ``--overwrite``,
        ``memory=False`` gives ``--no-memory``, ``budget=best`` gives
        ``--budget best``; settings of a config with a value, such as
        ``model.head.num_classes=4``, give
        ``--cfg-options model.head.num_classes=4``.
        """
        if '.' in name and '--cfg-options' in self._option_string_actions:
            return value and f'--cfg-options {name}={value}'
        for action in self._actions:
            options = action.option_strings
            if action.dest == name and options:
                no = [x for x in options if x.startswith('--no-')]
                yes = [x for x in options if x not in no]
                option = max(no if value == 'False' and no else yes, key=len)
                bare = value is None or action.nargs == 0
                return option if bare else f'{option} {value}'
        # messages about a damaged model advise to repeat fit
        return (
            '--overwrite' if (name, value) == ('overwrite', 'True') else None
        )

    def add(self, names: str, meaning: str, default=None, **options) -> None:
        """Add an argument whose help ends with its default.

        Args:
            names (str): Positional argument, or option names and metavar, as
                in ``'-p --phase NAME'``.
            meaning (str): Help text. The default is appended unless the text
                contains "default".
            default (object): Default value. A number also sets the option
                type. Defaults to None.
            **options: ``add_argument`` arguments.
        """
        if isinstance(default, (int, float)):
            options.setdefault('type', type(default))
        if default not in (None, [], {}) and 'default' not in meaning:
            meaning += ' (default: %(default)s)'
        flags = [name for name in names.split() if name[0] == '-']
        if flags and flags != names.split():
            options['metavar'] = names.split()[-1]
        self.add_argument(
            *(flags or [names]), default=default, help=meaning, **options
        )

    def share(self, *names: str) -> None:
        """Add shared options by their ``SHARED`` keys."""
        for name in names:
            self.add(name, **SHARED[name])

    def error(self, message: str) -> NoReturn:
        """Exit with the usage and one line, as argparse does."""
        super().error(printable(message))

    def flag(self, name: str, meaning: str) -> None:
        """Add an option without a value, False by default.

        Args:
            name (str): Name with its dashes.
            meaning (str): Help text.
        """
        self.add_argument(name, action='store_true', help=meaning)


class _Settings(argparse.Action):
    """``KEY=VALUE`` settings as in mmengine's ``DictAction``, and dicts."""

    def __call__(self, parser, namespace, values, option_string=None):
        """Parse ``KEY=VALUE`` settings; see ``argparse.Action``."""
        settings = dict(vars(namespace)[self.dest])
        for value in values:
            key, _, setting = value.partition('=')
            try:
                if not SETTING.match(value):
                    raise Error('no name and value')
                settings[key] = _value(setting)
            except (AssertionError, RecursionError, ValueError) as error:
                raise argparse.ArgumentError(
                    self,
                    f'{value:.80} is not KEY=VALUE; write no spaces around '
                    '=, lists as "[a,b]", dicts as "dict(a=1,b=\'c\')" with '
                    'quoted texts, or set it in the config',
                ) from error
        setattr(namespace, self.dest, settings)


def _value(setting: str):
    """Parse a value as mmengine does, or as plain settings if it has dicts."""
    from mmengine.config import DictAction

    if DICTS.match(setting):
        from mmclca.checkpoints.gate.plain_config import parse_plain_config

        return parse_plain_config(f'value = {setting}').to_dict()['value']
    value = DictAction._parse_iterable(setting)
    if isinstance(value, str) and setting.startswith(('[', '(')):
        raise Error('unclosed bracket')
    return value


# names separated by dots; lists of words do not match
SETTING = re.compile(r'[^\s=.]+(\.[^\s=.]+)*=')
DICTS = re.compile(r'\s*([\[(].*)?(\{|dict\()', re.DOTALL)
# argparse keywords of KEY=VALUE options
SETTINGS = dict(nargs='+', action=_Settings, default={}, metavar='KEY=VALUE')


def above_zero(maximum: float = inf) -> Callable[[str], float]:
    """Create an argparse type for numbers above 0."""

    def number(argument):
        if not 0 < float(argument) <= maximum:
            top = '' if maximum == inf else f' and at most {maximum}'
            problem = f'{argument}: expected a number above 0{top}'
            raise argparse.ArgumentTypeError(problem)
        return float(argument)

    return number


keep_rate, factor = above_zero(1), above_zero()


def whole_number(
    least: int, maximum: int | None = None
) -> Callable[[str], int]:
    """Create an argparse type for integers within bounds."""

    def number(argument):
        if int(argument) < least or (
            maximum is not None and int(argument) > maximum
        ):
            top = '' if maximum is None else f' and at most {maximum}'
            problem = f'{argument}: expected at least {least}{top}'
            raise argparse.ArgumentTypeError(problem)
        return int(argument)

    return number


positive, whole = whole_number(1), whole_number(0)


def device(name: str) -> str:
    """Parse a device name and check that PyTorch can use it."""
    import torch

    try:
        if name.partition(':')[0] not in DEVICES:
            raise RuntimeError('unknown type')
        torch.empty(0, device=name)
    except (AssertionError, RuntimeError) as error:
        reason = str(error).partition('\n')[0].partition('. ')[0]
        raise argparse.ArgumentTypeError(
            f'{name} is not available ({reason}); choose one of '
            f'{", ".join(DEVICES)}, or omit --device'
        ) from error
    return name


DEVICES = ('cpu', 'cuda', 'mps', 'xpu')


def file_named(*endings: str) -> Callable[[str], Path]:
    """Create an argparse type for file names with allowed endings."""

    def checked(argument):
        path = Path(argument)
        if path.suffix not in endings:
            expected = ' or '.join(endings)
            raise argparse.ArgumentTypeError(
                f'{argument}: expected a file name ending in {expected}'
            )
        return path

    return checked


CHECKPOINT = 'model folder written by fit, or path or URL of a checkpoint'
SHARED: dict[str, dict[str, Any]] = {
    'config': dict(meaning='path or name of a config'),
    'checkpoint': dict(meaning=CHECKPOINT),
    'folder': dict(
        meaning='model folder written by fit', type=Path, metavar='MODEL'
    ),
    '--config': dict(
        meaning='path or name of a config (default: stored in the checkpoint)'
    ),
    '--cfg-options': dict(
        meaning='config settings without spaces, e.g. '
        'model.head.num_classes=5 or key="[(a,b),(c,d)]"',
        **SETTINGS,
    ),
    '--device': dict(
        meaning='cpu or cuda (default: cuda if available)', type=device
    ),
    '--batch-size': dict(
        meaning='images per batch', default=32, type=positive
    ),
    '-r --rescale-factor': dict(
        meaning='scale factor of the drawn images (320 px)',
        default=1.0,
        type=factor,
    ),
    '--threshold FILE': dict(
        meaning='threshold file for unknown classes (default: in the model)',
        type=Path,
    ),
    '--folds': dict(
        meaning='cross-validation folds', default=5, type=whole_number(2)
    ),
    '--seed': dict(meaning='random seed', default=0),
    '--class-weights': dict(
        meaning='equal weight per class (default: per image)',
        choices=['balanced'],
    ),
    '--index FILE': dict(
        meaning='gallery file written by retrieval.py --save-index'
    ),
    '--out': dict(
        meaning='results file, .csv or .json', type=file_named('.csv', '.json')
    ),
}


def add_run_arguments(parser: Parser) -> None:
    """Add the options shared by train and test."""
    parser.add('--work-dir', 'folder for logs and results')
    parser.flag('--compile', 'torch.compile for backbone and head')
    parser.flag('--no-pin-memory', 'no pinned memory for batches')
    parser.share('--cfg-options')
    parser.add(
        '--launcher',
        'launcher of distributed runs',
        'none',
        choices=['none', 'pytorch', 'slurm', 'mpi'],
    )
    # torch.distributed.launch without --use-env passes the rank
    parser.add_argument('--local_rank', '--local-rank', type=int, default=0)


def check_file(path: Path) -> None:
    """Refuse an ``--out`` path that cannot be written; create its folder."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        existed = path.exists()
        path.open('ab').close()
        if not existed:
            path.unlink()
    except OSError as error:
        reason = error.strerror
        if path.parent.is_file():
            reason = f'{path.parent} is a file, not a folder'
        raise Error(f'`out`: {path}: {reason}') from error
