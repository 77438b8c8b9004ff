# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Options that several tools have."""

import argparse
import re
from collections.abc import Callable
from pathlib import Path

WEIGHTS = ('.bin', '.ckpt', '.pt', '.pth', '.safetensors')
STYLES = ('darkgrid', 'whitegrid', 'dark', 'white', 'ticks')


class _Settings(argparse.Action):
    """``KEY=VALUE``, as mmengine's ``DictAction`` reads them."""

    def __call__(self, parser, namespace, values, option_string=None):
        """Refuse what is no ``KEY=VALUE``; see ``argparse.Action``."""
        bare = [value for value in values if not value.partition('=')[1]]
        if bare:
            raise argparse.ArgumentError(
                self,
                f'{" ".join(bare)}: settings are written KEY=VALUE, without '
                'spaces around =',
            )
        from mmengine.config import DictAction

        action = DictAction(self.option_strings, self.dest, nargs='+')
        try:
            action(parser, namespace, values, option_string)
        except (AssertionError, ValueError) as error:
            raise argparse.ArgumentError(self, f'{error}') from error


# an option for them
SETTINGS = dict(nargs='+', action=_Settings, default={}, metavar='KEY=VALUE')


def keep_rate(text: str) -> float:
    """A keep rate of a command line."""
    rate = float(text)
    if not 0 < rate <= 1:
        raise argparse.ArgumentTypeError(f'{text}: above 0 and at most 1')
    return rate


def positive(text: str) -> int:
    """A number of a command line that is at least 1."""
    return _at_least(1, text)


def whole(text: str) -> int:
    """A number of a command line that is at least 0."""
    return _at_least(0, text)


def _at_least(least: int, text: str) -> int:
    if int(text) < least:
        raise argparse.ArgumentTypeError(f'{text}: at least {least}')
    return int(text)


def file_named(*endings: str) -> Callable[[str], Path]:
    """The type of a file whose name has one of some endings.

    Args:
        *endings (str): With their dots.
    """

    def checked(text):
        path = Path(text)
        if path.suffix not in endings:
            raise argparse.ArgumentTypeError(
                f'{text}: the name must end in {" or ".join(endings)}'
            )
        return path

    return checked


def add_cfg_options(parser):
    """Add ``--cfg-options`` of every tool that reads a config.

    Args:
        parser (mmclca.cli.Parser): The parser to extend.
    """
    parser.add(
        '--cfg-options',
        'override settings of the config, nested ones with dots; lists and '
        'tuples as key="[a,b]" or key="[(a,b),(c,d)]", without spaces',
        **SETTINGS,
    )


def add_leaves(parser):
    """Add ``--leaves`` of every tool that draws images.

    Args:
        parser (mmclca.cli.Parser): The parser to extend.
    """
    parser.add(
        '--leaves',
        'draw N synthetic leaves besides, each of another cultivar',
        0,
        metavar='N',
    )


def add_run_arguments(parser):
    """Add the arguments of every tool that builds a runner from a config.

    Args:
        parser (mmclca.cli.Parser): The parser to extend.
    """
    parser.add('--work-dir', 'folder for logs and results')
    parser.flag(
        '--compile',
        'compile backbone and head: slow to start, faster after that',
    )
    parser.flag(
        '--no-pin-memory',
        'do not pin the memory of batches (default: where CUDA is)',
    )
    add_cfg_options(parser)
    parser.add(
        '--launcher',
        'what starts the processes of a distributed run',
        'none',
        choices=['none', 'pytorch', 'slurm', 'mpi'],
    )
    # torch.distributed.launch passes it unless told to use the environment
    parser.add_argument('--local_rank', '--local-rank', type=int, default=0)


def add_device(parser) -> None:
    """Add where the model runs.

    Args:
        parser (mmclca.cli.Parser): The parser to extend.
    """
    parser.add('--device', 'cpu or cuda (default: cuda where there is a GPU)')


def add_folder(parser) -> None:
    """Add the folder that fit wrote.

    Args:
        parser (mmclca.cli.Parser): The parser to extend.
    """
    parser.add('folder', 'what fit wrote', type=Path, metavar='MODEL')


def add_reject(parser) -> None:
    """Add the threshold of a model.

    Args:
        parser (mmclca.cli.Parser): The parser to extend.
    """
    parser.add(
        '--reject',
        'file of open_set.py: it says what is of no known class (default: '
        'that in the folder of the model)',
        type=Path,
        metavar='THRESHOLD.json',
    )


def add_model_arguments(parser) -> None:
    """Add what every tool takes that loads a model.

    Args:
        parser (mmclca.cli.Parser): The parser to extend.
    """
    add_device(parser)
    add_cfg_options(parser)


def add_config_argument(parser) -> None:
    """Add the config of tools that a checkpoint is enough for.

    Args:
        parser (mmclca.cli.Parser): The parser to extend.
    """
    parser.add(
        '--config',
        'path or name of a config to use in place of the one in the '
        'checkpoint',
    )


def add_split_arguments(parser) -> None:
    """Add what tools take that draw a model on the images of a split.

    Args:
        parser (mmclca.cli.Parser): The parser to extend.
    """
    parser.add(
        'files',
        'a config (path or name; without, the one in the checkpoint) and '
        'weights',
        nargs='+',
        metavar='[CONFIG] CHECKPOINT',
    )
    parser.add('--out', 'picture to write', type=Path, required=True)
    splits = ('train', 'val', 'test')
    parser.add('--split', 'images of which split', 'test', choices=splits)


def check_window(parser, hint: str, not_show: bool = False) -> None:
    """Refuse to draw in a window where there is none.

    Args:
        parser (argparse.ArgumentParser): It ends the program.
        hint (str): What to do instead.
        not_show (bool): Whether no window is to open. Defaults to False.
    """
    from mmclca.visualization.figures import can_show

    if not_show or not can_show():
        parser.error(f'no window to draw in: {hint}')


def is_weights(name: str) -> bool:
    """Whether a name is that of a file of weights, by its ending."""
    return name.lower().endswith(WEIGHTS)


def add_figure_arguments(parser):
    """Add the arguments of every tool that draws curves.

    Args:
        parser (mmclca.cli.Parser): The parser to extend.
    """
    parser.add('--title', 'title of the figure')
    style = "one of seaborn's styles"
    parser.add('--style', style, 'whitegrid', choices=STYLES)
    shape = 'of the figure, in inches'
    parser.add('--window-size', shape, '12*7', type=size, metavar='W*H')


def size(text):
    """Width and height of ``W*H``, in inches."""
    if not re.fullmatch(r'[1-9]\d*\*[1-9]\d*', text):
        raise argparse.ArgumentTypeError(
            f'{text!r}: width*height in whole inches, such as "12*7"'
        )
    return tuple(map(int, text.split('*')))


def check_file(parser, path: Path) -> None:
    """Refuse a file of ``--out`` that cannot be written.

    Args:
        parser (argparse.ArgumentParser): It ends the program.
        path (Path): The file; its folder is made.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        existed = path.exists()
        path.open('a').close()
        if not existed:
            path.unlink()
    except OSError as error:
        parser.error(f'--out: {path}: {error.strerror}')
