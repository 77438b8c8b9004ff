# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The code, the packages and the machine that made a result."""

import platform
import re
import subprocess
from importlib import import_module
from pathlib import Path

import timm
import torch

from mmclca.version import __version__

# Pillow resizes the images: not every version to the same pixels
PACKAGES = ('mmclca', 'mmpretrain', 'mmcv', 'mmengine', 'timm', 'torch', 'PIL')


def provenance() -> dict:
    """Describe the origin of a result, ready for JSON.

    Returns:
        dict: ``commit`` of the checkout, with a plus where files differ from
        it, and empty where the package is installed elsewhere; ``versions``
        of Python and of the packages that decide a result; ``machine``, the
        GPU, or else the CPU and the threads in use.
    """
    versions = {name: import_module(name).__version__ for name in PACKAGES}
    return dict(
        commit=_commit(),
        versions=dict(python=platform.python_version(), **versions),
        machine=machine_name('cuda' if torch.cuda.is_available() else 'cpu'),
    )


def versions() -> dict[str, str]:
    """List the versions of what computes, by common names."""
    return dict(
        Python=platform.python_version(),
        PyTorch=torch.__version__,
        timm=timm.__version__,
        mmclca=__version__,
    )


def cpu_name() -> str:
    """Return the name of the CPU, and its architecture."""
    info = Path('/proc/cpuinfo')
    text = info.read_text() if info.exists() else ''
    name = re.search(r'model name\s*: (.+)', text)
    return f'{name[1] if name else platform.processor()}, {platform.machine()}'


def machine_name(device: str) -> str:
    """Return the name of a GPU, or that of the CPU and its threads in use."""
    if torch.device(device).type == 'cuda':
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f'{cpu_name()}, {threads} thread{"s" * (threads > 1)}'


def _commit() -> str:
    root = Path(__file__).parents[2]
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
