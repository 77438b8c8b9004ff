# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Where and with what something was measured."""

import os
import platform
from datetime import date

import timm
import torch
from torch.utils.collect_env import get_nvidia_driver_version, run

from mmclca.utils.provenance import cpu_name
from mmclca.version import __version__

from .setting import Setting


def machine(setting: Setting, command: str) -> dict[str, str]:
    """The machine, the versions and the command, by what they are.

    Args:
        setting (Setting): The device and the threads in use.
        command (str): The command line that measured.
    """
    threads = torch.get_num_threads()
    load = '/'.join(f'{average:.2f}' for average in os.getloadavg())
    facts = dict(
        CPU=f'{cpu_name()}, {torch.backends.cpu.get_cpu_capability()}',
        cores=f'{os.cpu_count()}, {threads} thread{"s" * (threads > 1)} used',
        load=f'{load} over 1/5/15 minutes at the start',
    )
    if setting.on_gpu:
        facts['GPU'] = torch.cuda.get_device_name(setting.device)
        driver = get_nvidia_driver_version(run) or 'unknown'
        facts['driver'] = f'{driver}, CUDA {torch.version.cuda}'
    return facts | dict(
        versions=f'Python {platform.python_version()}, PyTorch '
        f'{torch.__version__}, timm {timm.__version__}, mmclca {__version__}',
        date=str(date.today()),
        command=command,
    )
