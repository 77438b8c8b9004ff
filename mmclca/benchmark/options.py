# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What the command lines of the benchmarks share."""

import argparse
import shlex
import sys
from pathlib import Path

import torch

from .memory import can_measure
from .setting import AMP, Setting

COMPILE_MODES = (
    'default',
    'reduce-overhead',
    'max-autotune',
    'max-autotune-no-cudagraphs',
)


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


def add_setting(parser: argparse.ArgumentParser, batch: int) -> None:
    """Add the options of a :class:`Setting`.

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
        choices=list(AMP),
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


def add_rounds(parser: argparse.ArgumentParser, rounds: int) -> None:
    """Add how often is measured, and where the results go.

    Args:
        parser (argparse.ArgumentParser): The parser to extend.
        rounds (int): Default of ``--rounds``.
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
        help='measure the peak of memory too (default: with --train)',
    )
    parser.add_argument(
        '--out',
        metavar='PREFIX',
        help='write PREFIX.md, PREFIX.csv, PREFIX.json and PREFIX.png',
    )


def setting_of(args: argparse.Namespace) -> Setting:
    """The setting that a command line asks for."""
    return Setting(
        device=args.device,
        threads=args.threads,
        batch=args.batch,
        amp=args.amp,
        compile_mode=args.compile,
        train=args.train,
    )


def check_setting(parser, setting: Setting, with_memory: bool) -> None:
    """Refuse what would fail when the measuring has begun.

    Args:
        parser (argparse.ArgumentParser): It ends the program.
        setting (Setting): What was asked for.
        with_memory (bool): Whether memory is to be measured.
    """
    try:
        torch.empty(0, device=setting.device)
    except (AssertionError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        parser.error(f'--device {setting.device}: {reason}')
    if torch.device(setting.device).type not in ('cpu', 'cuda'):
        parser.error(f'--device {setting.device}: cpu or cuda')
    if setting.train and setting.batch < 2:
        parser.error(
            '--train --batch 1: at least 2, for the BatchNorm of the CLA head'
        )
    if with_memory and not can_measure(setting):
        parser.error('--memory on a CPU needs Linux: --no-memory')


def check_out(parser, prefix: str | None, suffixes: tuple[str, ...]) -> None:
    """Refuse what cannot be written, ahead of measuring.

    Args:
        parser (argparse.ArgumentParser): It ends the program.
        prefix (str, optional): Path of the results without suffix.
        suffixes (tuple[str]): Those of the files to be written.
    """
    if prefix is None:
        return
    for suffix in suffixes:
        path = Path(f'{prefix}.{suffix}')
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            existed = path.exists()
            path.open('a').close()
            if not existed:
                path.unlink()
        except OSError as error:
            parser.error(f'--out {prefix}: {path}: {error.strerror}')


def command_line() -> str:
    """The command that runs, as it can be typed again."""
    tool = Path(sys.argv[0]).name
    return shlex.join(['python', f'tools/benchmark/{tool}', *sys.argv[1:]])
