# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What the command lines of the benchmarks refuse before measuring."""

import torch

from .candidates import Size
from .memory import obstacle
from .setting import Setting

# torch.compile gives up after eight models of a kind, timm's among them
MOST_COMPILED = 7


def check_setting(parser, setting: Setting) -> None:
    """Refuse what would fail when the measuring has begun.

    Args:
        parser (argparse.ArgumentParser): It ends the program.
        setting (Setting): What was asked for.
    """
    if setting.device.partition(':')[0] not in ('cpu', 'cuda'):
        parser.error(f'--device {setting.device}: cpu, cuda or cuda:1')
    try:
        torch.empty(0, device=setting.device)
    except (AssertionError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        parser.error(f'--device {setting.device}: {reason}')
    if setting.cpu_time and (setting.on_gpu or setting.threads > 1):
        parser.error(
            '--cpu-time: with --device cpu and --threads 1 only, the time of '
            'other threads would be added'
        )
    if setting.train and setting.batch < 2:
        parser.error(
            '--train --batch 1: at least 2, for the BatchNorm of the CLA head'
        )


def with_memory(
    parser, setting: Setting, asked: bool | None, default: bool
) -> bool:
    """Whether to measure memory; refused where it cannot be measured.

    Args:
        parser (argparse.ArgumentParser): It ends the program.
        setting (Setting): One that passed :func:`check_setting`.
        asked (bool, optional): What ``--memory`` says; None if nothing.
        default (bool): What holds then, where memory can be measured.
    """
    reason = obstacle(setting)
    if asked and reason:
        mode = setting.compile_mode
        given = f'--memory --compile {mode}' if mode else '--memory'
        parser.error(f'{given}: {reason}; leave one out')
    return default and not reason if asked is None else asked


def check_img_size(parser, *sizes: int) -> None:
    """Refuse images that patches do not fill.

    Args:
        parser (argparse.ArgumentParser): It ends the program.
        *sizes (int): Sides of images in pixels.
    """
    for size in sizes:
        if size % Size.patch_size:
            parser.error(
                f'--img-size {size}: a multiple of {Size.patch_size}, the '
                'size of a patch'
            )


def check_at_once(parser, setting: Setting, at_once: int) -> None:
    """Refuse more models at once than ``torch.compile`` takes.

    Args:
        parser (argparse.ArgumentParser): It ends the program.
        setting (Setting): What was asked for.
        at_once (int): Models in memory beside timm's.
    """
    if setting.compile_mode and at_once > MOST_COMPILED:
        parser.error(
            f'--compile --at-once {at_once}: at most {MOST_COMPILED}, '
            "torch.compile gives up after eight models with timm's"
        )
