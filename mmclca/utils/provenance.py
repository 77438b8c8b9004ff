# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Record the code, packages and machine behind a result."""

import os
import platform
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import timm
import torch

from mmclca.version import __version__

# with Pillow, as versions differ in how they resize images
PACKAGES = ('mmclca', 'mmpretrain', 'mmcv', 'mmengine', 'timm', 'torch', 'PIL')


def provenance() -> dict:
    """Describe the origin of a result as a dict for JSON.

    ``commit`` of the checkout ends in a plus if files were changed, and is
    empty outside a checkout. ``versions`` has Python and the packages with an
    influence on results. ``machine`` is the GPU if available, even if unused,
    else the CPU with its number of threads.
    """
    versions = {name: import_module(name).__version__ for name in PACKAGES}
    return dict(
        commit=_commit(),
        versions=dict(python=platform.python_version(), **versions),
        machine=machine_name('cuda' if torch.cuda.is_available() else 'cpu'),
    )


def versions() -> dict[str, str]:
    """Return the versions of Python, PyTorch, timm and mmclca."""
    return dict(
        Python=platform.python_version(),
        PyTorch=torch.__version__,
        timm=timm.__version__,
        mmclca=__version__,
    )


def cpu_name() -> str:
    """Return name and architecture of the CPU."""
    info = Path('/proc/cpuinfo')
    content = info.read_text('utf-8') if info.exists() else ''
    name = re.search(r'model name\s*: (.+)', content)
    return f'{name[1] if name else platform.processor()}, {platform.machine()}'


def load_averages() -> tuple[float, float, float]:
    """Return the numbers of running processes over 1, 5 and 15 minutes."""
    if sys.platform == 'win32':
        import psutil

        return psutil.getloadavg()
    return os.getloadavg()


def machine_name(device: str) -> str:
    """Return the name of a GPU, or of the CPU with its number of threads."""
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
    except FileNotFoundError:  # git is not installed
        return ''
    return run.stdout.strip()
