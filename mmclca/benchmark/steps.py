# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""One pass of a model as a function without arguments, and its time.

Timing is interleaved: what disturbs one model disturbs all.
"""

import os
import sys
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import torch
from mmpretrain.structures import DataSample
from torch import Tensor, nn
from torch.utils.collect_env import get_nvidia_driver_version, run

from mmclca.deployment import onnx_logits, quantize, write_onnx
from mmclca.models import fuse
from mmclca.models.backbones.base import set_drop_path
from mmclca.registry import MODELS
from mmclca.utils.provenance import cpu_name, versions

from .candidates import INT8, Candidate

AMP = dict(bf16=torch.bfloat16, fp16=torch.float16)
FASTER = 0.8  # of the time in float32, or bfloat16 is not worth it


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
    """

    device: str = 'cpu'
    threads: int = 1
    batch: int = 8
    amp: str | None = None
    compile_mode: str | None = None
    train: bool = False

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

    def describe(self, batches: Sequence[int] = ()) -> str:
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
        return ', '.join(words)


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


def build(candidate: Candidate, device: str) -> nn.Module:
    """Build a model with random weights; what is logged goes to stderr."""
    with redirect_stdout(sys.stderr), torch.device(device):
        model = MODELS.build(candidate.config)
    set_drop_path(model)
    return fuse(model) if candidate.fused else model


def step_of(candidate: Candidate, setting: Setting) -> Callable[[], object]:
    """Return a pass over a batch of noise, inference or training.

    Args:
        candidate (Candidate): The model, built here.
        setting (Setting): What it is put through.
    """
    model = build(candidate, setting.device)
    return _step(model, setting, candidate.size.img_size, candidate.backend)


def step_of_config(
    config: dict, setting: Setting, backend: str = ''
) -> Callable[[], object]:
    """Return :func:`step_of` a model with random weights.

    Args:
        config (dict): Config of the classifier.
        setting (Setting): Conditions of the pass.
        backend (str): See :class:`Candidate`. Defaults to '', PyTorch.
    """
    with torch.device(setting.device):
        model = MODELS.build(config)
    return _step(model, setting, model.backbone.img_size, backend)


def _step(model, setting, img_size, backend) -> Callable[[], object]:
    images = setting.images(img_size)
    if backend:
        return onnx_step(model, images, setting, backend == INT8)
    make = training_step if setting.train else inference_step
    return make(model, images, setting)


def inference_step(
    model: nn.Module, images: Tensor, setting: Setting
) -> Callable[[], Tensor]:
    """Make a forward pass in evaluation: logits.

    Args:
        model (nn.Module): Takes images and returns logits.
        images (Tensor): Batch (B, 3, H, W) on the device of the model.
        setting (Setting): Its number format and compilation.
    """
    forward = _compiled(model.eval(), setting.compile_mode)

    @torch.inference_mode()
    def step():
        with setting.autocast():
            return forward(images)

    return step


def onnx_step(
    model: nn.Module, images: Tensor, setting: Setting, int8: bool = False
) -> Callable[[], Tensor]:
    """Make :func:`inference_step` of the exported model in ONNX Runtime.

    Args:
        model (nn.Module): See there; on the CPU.
        images (Tensor): See there.
        setting (Setting): Its threads.
        int8 (bool): Whether matrix products with weights are 8-bit ones.
            Defaults to False.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder, 'model.onnx')
        write_onnx(model.eval(), tuple(images.shape[2:]), path, {})
        if int8:
            quantize(path, path)
        return partial(onnx_logits(path, setting.threads), images)


def training_step(
    model: nn.Module, images: Tensor, setting: Setting
) -> Callable[[], Tensor]:
    """Forward with all losses, backward and fused AdamW: the loss.

    Only the forward pass and its backward pass are compiled.

    Args:
        model (BaseModel): A classifier of mmpretrain or of this package.
        images (Tensor): Batch (B, 3, H, W) on the device of the model.
        setting (Setting): Its number format and compilation.
    """
    model.train()
    labels = torch.arange(len(images), device=images.device) % 2
    # one sample with the labels of all: its values are all that losses read
    samples = [DataSample().set_gt_label(labels)]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    half = AMP.get(setting.amp) is torch.float16
    # not the usual 2 ** 16: where gradients overflow, a step is left out
    scaler = torch.amp.GradScaler(
        images.device.type, init_scale=2.0**10, enabled=half
    )

    def loss_of(images):
        return model.parse_losses(model.loss(images, samples))[0]

    loss_of = _compiled(loss_of, setting.compile_mode)

    def step():
        with setting.autocast():
            loss = loss_of(images)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        return loss.detach()

    return step


def _compiled(function: Callable, mode: str | None) -> Callable:
    if mode is None:
        return function
    # one graph: a model that falls back to eager would be timed unnoticed
    compiled = torch.compile(function, mode=mode, fullgraph=True)

    def call(images):
        # CUDA graphs of interleaved models share memory
        torch.compiler.cudagraph_mark_step_begin()
        return compiled(images)

    return call


def interleaved_seconds(
    steps: dict[Hashable, Callable[[], object]],
    setting: Setting,
    rounds: int = 15,
    warm_up: int = 2,
) -> dict[Hashable, list[float]]:
    """Seconds of each pass of several models, interleaved.

    One pass of each model after the other (A B A B), so that a change of the
    machine's load meets all of them.

    Args:
        steps (dict[Hashable, Callable]): A pass of each model, without
            arguments, by its name.
        setting (Setting): The models' device, and whose time counts.
        rounds (int): Timed passes of each model. Defaults to 15.
        warm_up (int): Passes before these that are not counted.
            Defaults to 2.

    Returns:
        dict[Hashable, list[float]]: A number a round, by the name. A model
        that ran out of a GPU's memory is not among them.
    """
    seconds = {name: [] for name in steps}
    for _ in range(warm_up + rounds):
        for name in tuple(seconds):
            try:
                seconds[name].append(seconds_of(steps[name], setting))
            except torch.OutOfMemoryError:
                del seconds[name]
    return {name: values[warm_up:] for name, values in seconds.items()}


def seconds_of(step: Callable[[], object], setting: Setting) -> float:
    """Seconds of one pass, of the GPU or of the clock."""
    if setting.on_gpu:
        return _seconds_on_gpu(step, torch.device(setting.device))
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def _seconds_on_gpu(step: Callable[[], object], device: torch.device) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize(device)
    with torch.cuda.device(device):
        start.record()
        step()
        end.record()
    torch.cuda.synchronize(device)
    return start.elapsed_time(end) / 1e3


def quicker_amp(config: dict, batch: int, device: str) -> str | None:
    """Return the quicker number format of a training step; None for float32.

    bfloat16 takes half the time where a processor has instructions for it.

    Args:
        config (dict): Of the classifier.
        batch (int): Images in a batch.
        device (str): Where it is trained.
    """
    seconds = {}
    for amp in (None, 'bf16'):
        setting = Setting(device, batch=batch, amp=amp, train=True)
        steps = {amp: step_of_config(config, setting)}
        seconds[amp] = min(interleaved_seconds(steps, setting, 2, 1)[amp])
    return 'bf16' if seconds['bf16'] < FASTER * seconds[None] else None


def median_milliseconds(
    steps: Mapping[str, Callable], setting: Setting, rounds: int, warm_up: int
) -> dict[str, float]:
    """Median time of each of some steps.

    Args:
        steps (Mapping[str, Callable]): The steps by name.
        setting (Setting): How they run.
        rounds (int): Timed passes of each.
        warm_up (int): Passes before these.
    """
    seconds = interleaved_seconds(steps, setting, rounds, warm_up)
    return {name: 1e3 * median(values) for name, values in seconds.items()}
