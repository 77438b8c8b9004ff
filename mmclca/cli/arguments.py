# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Options that several tools have."""

import argparse
import re
from pathlib import Path

WEIGHTS = ('.bin', '.ckpt', '.pt', '.pth', '.safetensors')
STYLES = ('darkgrid', 'whitegrid', 'dark', 'white', 'ticks')


class Settings(argparse.Action):
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


def add_option(parser, name: str, default, meaning: str, **more) -> None:
    """Add an option whose help ends with its default.

    Args:
        parser (argparse.ArgumentParser): The parser to extend.
        name (str): With its dashes.
        default (object): What holds where it is not given.
        meaning (str): What the help says.
        **more: Of ``add_argument``.
    """
    words = f'{meaning} (default: %(default)s)'
    parser.add_argument(name, default=default, help=words, **more)


def add_cfg_options(parser):
    """Add ``--cfg-options`` of every tool that reads a config.

    Args:
        parser (argparse.ArgumentParser): The parser to extend.
    """
    parser.add_argument(
        '--cfg-options',
        nargs='+',
        action=Settings,
        default={},
        metavar='KEY=VALUE',
        help='override settings of the config, nested ones with dots; lists '
        'and tuples as key="[a,b]" or key="[(a,b),(c,d)]", without spaces',
    )


def add_run_arguments(parser):
    """Add the arguments of every tool that builds a runner from a config.

    Args:
        parser (argparse.ArgumentParser): The parser to extend.
    """
    parser.add_argument('--work-dir', help='folder for logs and results')
    parser.add_argument(
        '--compile',
        action='store_true',
        help='compile backbone and head: slow to start, faster after that',
    )
    parser.add_argument(
        '--no-pin-memory',
        action='store_true',
        help='do not pin the memory of batches (default: where CUDA is)',
    )
    add_cfg_options(parser)
    parser.add_argument(
        '--launcher',
        choices=['none', 'pytorch', 'slurm', 'mpi'],
        default='none',
        help='what starts the processes of a distributed run',
    )
    # torch.distributed.launch passes it unless told to use the environment
    parser.add_argument('--local_rank', '--local-rank', type=int, default=0)


def add_model_arguments(parser) -> None:
    """Add what every tool takes that loads a model.

    Args:
        parser (argparse.ArgumentParser): The parser to extend.
    """
    parser.add_argument(
        '--device',
        help='where to run the model (default: cuda where there is a GPU, '
        'else cpu)',
    )
    add_cfg_options(parser)


def add_config_argument(parser) -> None:
    """Add the config of tools that a checkpoint is enough for.

    Args:
        parser (argparse.ArgumentParser): The parser to extend.
    """
    parser.add_argument(
        '--config',
        help='path or name of a config to use in place of the one in the '
        'checkpoint',
    )


def add_split_arguments(parser) -> None:
    """Add what tools take that draw a model on the images of a split.

    Args:
        parser (argparse.ArgumentParser): The parser to extend.
    """
    parser.add_argument(
        'files',
        nargs='+',
        metavar='[CONFIG] CHECKPOINT',
        help='a config (path or name; without, the one in the checkpoint) '
        'and weights',
    )
    parser.add_argument(
        '--out', type=Path, required=True, help='picture to write'
    )
    splits = ('train', 'val', 'test')
    add_option(
        parser, '--split', 'test', 'images of which split', choices=splits
    )


def is_weights(name: str) -> bool:
    """Whether a name is that of a file of weights, by its ending."""
    return name.lower().endswith(WEIGHTS)


def add_figure_arguments(parser):
    """Add the arguments of every tool that draws curves.

    Args:
        parser (argparse.ArgumentParser): The parser to extend.
    """
    parser.add_argument('--title', help='title of the figure')
    style, shape = "one of seaborn's styles", 'of the figure, in inches'
    add_option(parser, '--style', 'whitegrid', style, choices=STYLES)
    add_option(
        parser, '--window-size', '12*7', shape, type=size, metavar='W*H'
    )


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
