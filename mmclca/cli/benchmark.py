# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What the command lines of the benchmarks share."""

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from .arguments import check_file
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
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f'{text}: at least 1')
    return number


def whole(text: str) -> int:
    """A number of a command line that is at least 0."""
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f'{text}: at least 0')
    return number


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
    parser.add_argument(
        '--img-size',
        nargs='+',
        type=positive,
        default=default,
        metavar='PIXELS',
        help=f'{meaning} (default: %(default)s)',
    )


def add_clca(parser: argparse.ArgumentParser, default: str) -> None:
    """Add whether methods have CLCA.

    Args:
        parser (argparse.ArgumentParser): The parser to extend.
        default (str): A key of ``CLCA``.
    """
    parser.add_argument(
        '--clca',
        choices=list(CLCA),
        default=default,
        help='--methods with cache and CLA head (default: %(default)s)',
    )


def add_setting(parser: argparse.ArgumentParser, batch: int) -> None:
    """Add the options of a
    :class:`mmclca.benchmark.Setting`.

    Args:
        parser (argparse.ArgumentParser): The parser to extend.
        batch (int): Default of ``--batch``.
    """
    parser.add_argument(
        '--device',
        default='cpu',
        help='cpu, cuda or cuda:1 (default: %(default)s)',
    )
    parser.add_argument(
        '--threads',
        type=positive,
        default=1,
        help='threads on the CPU (default: %(default)s)',
    )
    parser.add_argument(
        '--batch',
        type=positive,
        default=batch,
        help='images in a batch (default: %(default)s)',
    )
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
    parser.add_argument(
        '--rounds',
        type=positive,
        default=rounds,
        help='timed passes of each model (default: %(default)s)',
    )
    parser.add_argument(
        '--warm-up',
        type=whole,
        default=2,
        help='passes of each model before these (default: %(default)s)',
    )
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
