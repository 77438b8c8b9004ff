# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What the command lines of the benchmarks share."""

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from .arguments import check_file, positive, whole
from .choices import AMP, ARCHS, CUDA_GRAPHS
from .parser import Parser

COMPILE_MODES = (
    'default',
    'reduce-overhead',
    'max-autotune',
    'max-autotune-no-cudagraphs',
)
ARCH = dict(choices=ARCHS, metavar='NAME')
CLCA = dict(no=[False], yes=[True], both=[False, True])


def add_arch(parser: Parser) -> None:
    """Add the size of a model, ViT-S/16 by default.

    Args:
        parser (Parser): The parser to extend.
    """
    parser.add(
        '--arch',
        'of VisionTransformer in MMPretrain (default: %(default)s, which is '
        'ViT-S/16)',
        'deit-small',
        **ARCH,
    )


def add_img_size(parser: Parser, default: Sequence[int], meaning: str) -> None:
    """Add the sizes of images.

    Args:
        parser (Parser): The parser to extend.
        default (Sequence[int]): Sides in pixels.
        meaning (str): Of what they are the sides.
    """
    more = dict(nargs='+', type=positive, metavar='PIXELS')
    parser.add('--img-size', meaning, default, **more)


def add_clca(parser: Parser, default: str) -> None:
    """Add whether methods have CLCA.

    Args:
        parser (Parser): The parser to extend.
        default (str): A key of ``CLCA``.
    """
    meaning = '--methods with cache and CLA head'
    parser.add('--clca', meaning, default, choices=list(CLCA))


def add_setting(parser: Parser, batch: int | list[int], **more) -> None:
    """Add the options of a
    :class:`mmclca.benchmark.Setting`.

    Args:
        parser (Parser): The parser to extend.
        batch (int | list[int]): Default of ``--batch``.
        **more: Further settings of ``--batch``.
    """
    parser.add('--device', 'cpu, cuda or cuda:1', 'cpu')
    parser.add('--threads', 'threads on the CPU', 1, type=positive)
    parser.add('--batch', 'images in a batch', batch, type=positive, **more)
    parser.flag(
        '--cpu-time',
        'count the time of the process on the CPU, with one thread: on a busy '
        'machine it is steadier than that of the clock',
    )
    parser.add(
        '--amp', 'automatic mixed precision (default: float32)', choices=AMP
    )
    parser.add(
        '--compile',
        'compile the models with torch.compile; MODE is one of %(choices)s '
        '(default: eager)',
        nargs='?',
        const='default',
        choices=COMPILE_MODES,
        metavar='MODE',
    )
    parser.flag('--train', 'time training steps: forward, backward and AdamW')


def add_rounds(parser: Parser, rounds: int, memory: str) -> None:
    """Add how often is measured, and where the results go.

    Args:
        parser (Parser): The parser to extend.
        rounds (int): Default of ``--rounds``.
        memory (str): When ``--memory`` is on by default, in words.
    """
    timed = 'timed passes of each model'
    parser.add('--rounds', timed, rounds, type=positive)
    before = 'passes of each model before these'
    parser.add('--warm-up', before, 2, type=whole)
    parser.add_argument(
        '--memory',
        action=argparse.BooleanOptionalAction,
        help='measure the peak of memory too; not with --compile on a CPU, '
        f'nor with --compile {" or ".join(CUDA_GRAPHS)} on a GPU '
        f'(default: {memory}, where it can be)',
    )
    parser.add(
        '--out',
        'write PREFIX.md, PREFIX.csv, PREFIX.json and PREFIX.png',
        metavar='PREFIX',
    )


def setting_of(args: argparse.Namespace, batch: int):
    """The :class:`Setting` that a command line asks for, with a batch."""
    from mmclca.benchmark import Setting

    return Setting(
        device=args.device,
        threads=args.threads,
        batch=batch,
        amp=args.amp,
        compile_mode=args.compile,
        train=args.train,
        cpu_time=args.cpu_time,
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


def command_line(tool: str) -> str:
    """The command that runs, as it can be typed again.

    Args:
        tool (str): Path of the tool, its ``__file__``.
    """
    name = Path(tool).name
    return shlex.join(['python', f'tools/benchmark/{name}', *sys.argv[1:]])


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
