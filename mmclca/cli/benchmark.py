# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What the command lines of the benchmarks share."""

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from .arguments import add_option, check_file
from .choices import AMP, ARCHS, CUDA_GRAPHS

COMPILE_MODES = (
    'default',
    'reduce-overhead',
    'max-autotune',
    'max-autotune-no-cudagraphs',
)
ARCH = dict(choices=ARCHS, metavar='NAME')
CLCA = dict(no=[False], yes=[True], both=[False, True])


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


def add_arch(parser: argparse.ArgumentParser) -> None:
    """Add the size of a model, ViT-S/16 by default.

    Args:
        parser (argparse.ArgumentParser): The parser to extend.
    """
    parser.add_argument(
        '--arch',
        default='deit-small',
        help='of VisionTransformer in MMPretrain (default: %(default)s, '
        'which is ViT-S/16)',
        **ARCH,
    )


def add_img_size(
    parser: argparse.ArgumentParser, default: Sequence[int], meaning: str
) -> None:
    """Add the sizes of images.

    Args:
        parser (argparse.ArgumentParser): The parser to extend.
        default (Sequence[int]): Sides in pixels.
        meaning (str): Of what they are the sides.
    """
    more = dict(nargs='+', type=positive, metavar='PIXELS')
    add_option(parser, '--img-size', default, meaning, **more)


def add_clca(parser: argparse.ArgumentParser, default: str) -> None:
    """Add whether methods have CLCA.

    Args:
        parser (argparse.ArgumentParser): The parser to extend.
        default (str): A key of ``CLCA``.
    """
    meaning = '--methods with cache and CLA head'
    add_option(parser, '--clca', default, meaning, choices=list(CLCA))


def add_setting(parser: argparse.ArgumentParser, batch: int) -> None:
    """Add the options of a
    :class:`mmclca.benchmark.Setting`.

    Args:
        parser (argparse.ArgumentParser): The parser to extend.
        batch (int): Default of ``--batch``.
    """
    add_option(parser, '--device', 'cpu', 'cpu, cuda or cuda:1')
    for name, default, meaning in (
        ('--threads', 1, 'threads on the CPU'),
        ('--batch', batch, 'images in a batch'),
    ):
        add_option(parser, name, default, meaning, type=positive)
    parser.add_argument(
        '--amp',
        choices=AMP,
        help='automatic mixed precision (default: float32)',
    )
    parser.add_argument(
        '--compile',
        nargs='?',
        const='default',
        choices=COMPILE_MODES,
        metavar='MODE',
        help='compile the models with torch.compile; MODE is one of '
        '%(choices)s (default: eager)',
    )
    parser.add_argument(
        '--train',
        action='store_true',
        help='time training steps: forward, backward and AdamW',
    )


def add_rounds(
    parser: argparse.ArgumentParser, rounds: int, memory: str
) -> None:
    """Add how often is measured, and where the results go.

    Args:
        parser (argparse.ArgumentParser): The parser to extend.
        rounds (int): Default of ``--rounds``.
        memory (str): When ``--memory`` is on by default, in words.
    """
    timed = 'timed passes of each model'
    add_option(parser, '--rounds', rounds, timed, type=positive)
    before = 'passes of each model before these'
    add_option(parser, '--warm-up', 2, before, type=whole)
    parser.add_argument(
        '--memory',
        action=argparse.BooleanOptionalAction,
        help='measure the peak of memory too; not with --compile on a CPU, '
        f'nor with --compile {" or ".join(CUDA_GRAPHS)} on a GPU '
        f'(default: {memory}, where it can be)',
    )
    parser.add_argument(
        '--out',
        metavar='PREFIX',
        help='write PREFIX.md, PREFIX.csv, PREFIX.json and PREFIX.png',
    )


def setting_of(args: argparse.Namespace):
    """The :class:`Setting` that a command line asks for."""
    from mmclca.benchmark import Setting

    return Setting(
        device=args.device,
        threads=args.threads,
        batch=args.batch,
        amp=args.amp,
        compile_mode=args.compile,
        train=args.train,
    )


def begin(tool: str, setting) -> dict[str, str]:
    """Set the threads and the seed of a measurement; gives the machine.

    Args:
        tool (str): Path of the tool, its ``__file__``.
        setting (Setting): What is measured.
    """
    import torch

    from mmclca.benchmark.machine import machine

    torch.set_num_threads(setting.threads)
    torch.manual_seed(0)
    return machine(setting, command_line(tool))


def command_line(tool: str, argv: Sequence[str] | None = None) -> str:
    """The command that runs, as it can be typed again.

    Args:
        tool (str): Path of the tool, its ``__file__``.
        argv (Sequence[str], optional): Its arguments. Defaults to None,
            those of this process.
    """
    given = sys.argv[1:] if argv is None else argv
    name = Path(tool).name
    return shlex.join(['python', f'tools/benchmark/{name}', *given])


def check_out(parser, prefix: str | None, suffixes: tuple[str, ...]) -> None:
    """Refuse what cannot be written, before measuring.

    Args:
        parser (argparse.ArgumentParser): It ends the program.
        prefix (str, optional): Path of the results without suffix.
        suffixes (tuple[str]): Those of the files to be written.
    """
    if prefix is None:
        return
    for suffix in suffixes:
        check_file(parser, Path(f'{prefix}.{suffix}'))
