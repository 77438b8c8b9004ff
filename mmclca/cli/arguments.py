# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The parser of command lines, and options that several commands have."""

import argparse
import re
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from mmclca.utils.messages import printable

from .mistakes import Mistake


class Parser(argparse.ArgumentParser):
    """A parser with ``--debug``, which :func:`mmclca.cli.run` reads.

    Args:
        description (str): What the command does: the first paragraph of a
            docstring.
        go_on (str): How to go on after Ctrl-C. Defaults to ''.
        **more: Of ``argparse.ArgumentParser``.
    """

    def __init__(self, description: str = '', go_on: str = '', **more):
        first, *_ = description.split('\n\n')
        super().__init__(description=' '.join(first.split()), **more)
        self.set_defaults(go_on=go_on)
        self.flag('--debug', 'show the traceback of a mistake, not one line')

    def add(self, names: str, meaning: str, default=None, **more) -> None:
        """Add an argument whose help ends with its default.

        Args:
            names (str): Of a positional argument, or of an option with its
                dashes, a short one before it and the name of its value after
                it: ``'-p --phase NAME'``.
            meaning (str): What the help says. The default is added unless
                the word is in it.
            default (object): The value where none is given; without a
                ``type``, values are numbers if it is one. Defaults to None.
            **more: Of ``add_argument``.
        """
        if isinstance(default, (int, float)):
            more.setdefault('type', type(default))
        if default not in (None, [], {}) and 'default' not in meaning:
            meaning += ' (default: %(default)s)'
        flags = [name for name in names.split() if name[0] == '-']
        if flags and flags != names.split():
            more['metavar'] = names.split()[-1]
        self.add_argument(
            *(flags or [names]), default=default, help=meaning, **more
        )

    def share(self, *names: str) -> None:
        """Add options that several commands have: keys of ``SHARED``."""
        for name in names:
            self.add(name, **SHARED[name])

    def error(self, message: str) -> NoReturn:
        """End with usage and one line, as argparse does."""
        super().error(printable(message))

    def flag(self, name: str, meaning: str) -> None:
        """Add an option that is False unless it is given.

        Args:
            name (str): With its dashes.
            meaning (str): What the help says.
        """
        self.add_argument(name, action='store_true', help=meaning)


class _Settings(argparse.Action):
    """``KEY=VALUE``, as mmengine's ``DictAction`` reads them, and dicts."""

    def __call__(self, parser, namespace, values, option_string=None):
        """Refuse what is no ``KEY=VALUE``; see ``argparse.Action``."""
        found = dict(vars(namespace)[self.dest])
        for value in values:
            key, _, text = value.partition('=')
            try:
                if not SETTING.match(value):
                    raise ValueError('no name and value')
                found[key] = _value(text)
            except (AssertionError, RecursionError, ValueError) as error:
                raise argparse.ArgumentError(
                    self,
                    f'{value:.80} is not understood: write KEY=VALUE without '
                    'spaces around =, lists as "[a,b]", dicts as '
                    '"dict(a=1,b=\'c\')" with texts in quotes, or set it in '
                    'the config',
                ) from error
        setattr(namespace, self.dest, found)


def _value(text: str):
    """Read a value: with dicts as Python's, or as mmengine does."""
    from mmengine.config import DictAction

    if DICTS.match(text):
        from mmclca.checkpoints.stored import parse_plain_config

        return parse_plain_config(f'value = {text}').to_dict()['value']
    value = DictAction._parse_iterable(text)
    if isinstance(value, str) and text.startswith(('[', '(')):
        raise ValueError('a bracket is open')
    return value


# names between dots, and what no list of words begins with
SETTING = re.compile(r'[^\s=.]+(\.[^\s=.]+)*=')
DICTS = re.compile(r'\s*([\[(].*)?(\{|dict\()', re.DOTALL)
# an option for them
SETTINGS = dict(nargs='+', action=_Settings, default={}, metavar='KEY=VALUE')


def keep_rate(text: str) -> float:
    """Read a keep rate."""
    rate = float(text)
    if not 0 < rate <= 1:
        raise argparse.ArgumentTypeError(f'{text}: above 0 and at most 1')
    return rate


def factor(text: str) -> float:
    """Read a number above 0."""
    if float(text) <= 0:
        raise argparse.ArgumentTypeError(f'{text}: above 0')
    return float(text)


def whole_number(least: int, most: int | None = None) -> Callable[[str], int]:
    """Make the type of a whole number within bounds."""

    def number(text):
        if int(text) < least or (most is not None and int(text) > most):
            top = '' if most is None else f' and at most {most}'
            raise argparse.ArgumentTypeError(f'{text}: at least {least}{top}')
        return int(text)

    return number


positive, whole = whole_number(1), whole_number(0)


def device(text: str) -> str:
    """Read the name of a device, and see that PyTorch can use it."""
    import torch

    try:
        if text.partition(':')[0] not in DEVICES:
            raise RuntimeError('unknown type')
        torch.empty(0, device=text)
    except (AssertionError, RuntimeError) as error:
        reason = str(error).partition('\n')[0].partition('. ')[0]
        raise argparse.ArgumentTypeError(
            f'{text} is not available ({reason}): choose one of '
            f'{", ".join(DEVICES)} that this computer has, or leave it out'
        ) from error
    return text


DEVICES = ('cpu', 'cuda', 'mps', 'xpu')


def file_named(*endings: str) -> Callable[[str], Path]:
    """Make the type of a file whose name has one of some endings."""

    def checked(text):
        path = Path(text)
        if path.suffix not in endings:
            raise argparse.ArgumentTypeError(
                f'{text}: the name must end in {" or ".join(endings)}'
            )
        return path

    return checked


CHECKPOINT = (
    'path or URL of the weights, which hold config and class names, or a '
    'folder that fit wrote'
)
SHARED = {
    'checkpoint': dict(meaning=CHECKPOINT),
    'folder': dict(meaning='what fit wrote', type=Path, metavar='MODEL'),
    '--config': dict(
        meaning='path or name of a config to use in place of the one in the '
        'checkpoint'
    ),
    '--cfg-options': dict(
        meaning='settings of the config, such as model.head.num_classes=5 or '
        'key="[(a,b),(c,d)]", without spaces',
        **SETTINGS,
    ),
    '--device': dict(
        meaning='cpu or cuda (default: cuda where there is a GPU)', type=device
    ),
    '--batch-size': dict(
        meaning='images at a time', default=32, type=positive
    ),
    '-r --rescale-factor': dict(
        meaning='scale of the drawn images, 320 px high by default',
        default=1.0,
        type=factor,
    ),
    '--reject THRESHOLD.json': dict(
        meaning='threshold for unknown classes (default: that of the model)',
        type=Path,
    ),
    '--class-weights': dict(
        meaning='weigh classes alike (default: weigh images alike)',
        choices=['balanced'],
    ),
    '--index FILE': dict(
        meaning='gallery that retrieval.py --save-index wrote'
    ),
    '--out': dict(
        meaning='write the results to a .csv or .json file',
        type=file_named('.csv', '.json'),
    ),
}


def add_run_arguments(parser: Parser) -> None:
    """Add the arguments of what builds a runner from a config."""
    parser.add('--work-dir', 'folder for logs and results')
    parser.flag('--compile', 'compile backbone and head with torch.compile')
    parser.flag('--no-pin-memory', 'do not pin the memory of batches')
    parser.share('--cfg-options')
    parser.add(
        '--launcher',
        'launcher of a distributed run',
        'none',
        choices=['none', 'pytorch', 'slurm', 'mpi'],
    )
    # torch.distributed.launch passes it unless told to use the environment
    parser.add_argument('--local_rank', '--local-rank', type=int, default=0)


def check_file(path: Path) -> None:
    """Refuse a file of ``--out`` that cannot be written; make its folder."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        existed = path.exists()
        path.open('a').close()
        if not existed:
            path.unlink()
    except OSError as error:
        reason = error.strerror
        if path.parent.is_file():
            reason = f'{path.parent} is a file, not a folder'
        raise Mistake(f'--out: {path}: {reason}') from error
