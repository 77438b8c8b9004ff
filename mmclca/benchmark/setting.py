# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Where and with what something was measured."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import torch
from torch import Tensor
from torch.utils.collect_env import get_nvidia_driver_version, run

from mmclca.utils.provenance import cpu_name, versions

AMP = dict(bf16=torch.bfloat16, fp16=torch.float16)


@dataclass(frozen=True)
class Setting:
    """The conditions that all models of a comparison share.

    Args:
        device (str): Where they run. Defaults to 'cpu'.
        threads (int): Threads of PyTorch on the CPU. Defaults to 1.
        batch (int): Images in a batch B. Defaults to 8.
        amp (str, optional): Automatic mixed precision, a key of ``AMP``.
            Defaults to None, float32.
        compile_mode (str, optional): Mode of ``torch.compile``. Defaults to
            None, eager.
        train (bool): Whether a pass is a training step (forward, loss,
            backward, optimizer) instead of inference. Defaults to False.
        cpu_time (bool): Whether to count the time of the process on the CPU,
            with one thread, instead of that of the clock. Defaults to False.
    """

    device: str = 'cpu'
    threads: int = 1
    batch: int = 8
    amp: str | None = None
    compile_mode: str | None = None
    train: bool = False
    cpu_time: bool = False

    @property
    def on_gpu(self) -> bool:
        """Whether the device is a GPU."""
        return torch.device(self.device).type == 'cuda'

    def images(self, shape: tuple[int, int]) -> Tensor:
        """Return a batch of noise, (B, 3, H, W), on the device."""
        return torch.randn(self.batch, 3, *shape, device=self.device)

    def autocast(self) -> torch.autocast:
        """Context of a forward pass."""
        device = torch.device(self.device).type
        return torch.autocast(device, AMP.get(self.amp), self.amp is not None)

    def words(self, batches: Sequence[int] = ()) -> str:
        """Return the setting in words.

        Args:
            batches (Sequence[int]): Batches that were measured, where there
                are more than its own. Defaults to ().
        """
        mode = self.compile_mode
        place = 'GPU' if self.on_gpu else f'CPU, {self.threads} thread'
        words = [
            'training step' if self.train else 'inference',
            f'batch {"/".join(map(str, batches or [self.batch]))}',
            self.amp or 'float32',
            f'torch.compile ({mode})' if mode else 'eager',
            place + 's' * (not self.on_gpu and self.threads > 1),
        ]
        return ', '.join(words + ['CPU time'] * self.cpu_time)


def machine(setting: Setting, command: str) -> dict[str, str]:
    """Return the machine, the versions and the command, by what they are.

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
        versions=', '.join(f'{k} {v}' for k, v in versions().items()),
        date=str(date.today()),
        command=command,
    )
