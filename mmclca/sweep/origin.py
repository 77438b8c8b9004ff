# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""With which code and on what a result was made."""

import platform
import subprocess
from pathlib import Path

import mmcv
import mmengine
import mmpretrain
import PIL
import timm
import torch

import mmclca
from mmclca.benchmark.machine import cpu_name

# Pillow resizes the images: not every version to the same pixels
PACKAGES = (mmclca, mmpretrain, mmcv, mmengine, timm, torch, PIL)


def commit() -> str:
    """Commit of the checkout, with a plus where files differ from it; empty
    where the package is installed elsewhere."""
    root = Path(mmclca.__file__).parents[1]
    if _git(root, 'rev-parse', '--show-toplevel') != str(root):
        return ''
    return _git(root, 'describe', '--always', '--dirty=+', '--exclude=*')


def _git(folder: Path, *arguments: str) -> str:
    command = ['git', '-C', str(folder), *arguments]
    try:
        run = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:  # no git on this machine
        return ''
    return run.stdout.strip()


def machine() -> str:
    """The GPU, or else the CPU and the threads in use."""
    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    return f'{cpu_name()}, {torch.get_num_threads()} thread(s)'


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide a result."""
    found = {package.__name__: package.__version__ for package in PACKAGES}
    return dict(python=platform.python_version(), **found)
