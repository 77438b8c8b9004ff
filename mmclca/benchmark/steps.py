# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A model's pass as a function without arguments, and interleaved timing."""

import os
import sys
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import redirect_stdout
from copy import deepcopy
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TypeVar

import torch
from mmpretrain.models.utils import to_2tuple
from mmpretrain.structures import DataSample
from torch import Tensor, nn
from torch.utils.collect_env import get_nvidia_driver_version, run

from mmclca.deployment import (
    load_onnx,
    quantize,
    write_onnx,
    write_onnx_to_time,
)
from mmclca.models import fuse
from mmclca.models.backbones.base import set_drop_path
from mmclca.registry import MODELS
from mmclca.utils.provenance import cpu_name, load_averages, versions
from mmclca.utils.torch_versions import COMPILES, require_torch

from .candidates import FUSED, INT8, ONNX, Candidate

AMP = dict(bf16=torch.bfloat16, fp16=torch.float16)
ANY_SIZE = 224  # image size for models that accept any size
Name = TypeVar('Name', bound=Hashable)
FASTER = 0.8  # use bfloat16 only below this share of the float32 time


@dataclass(frozen=True)
class Setting:
    """Measurement conditions shared by all models in a comparison.

    Args:
        device (str): Device. Defaults to 'cpu'.
        threads (int): PyTorch threads on the CPU. Defaults to 1.
        batch (int): Batch size B. Defaults to 8.
        amp (str, optional): Automatic mixed precision, a key in ``AMP``.
            Defaults to None, float32.
        compile_mode (str, optional): ``torch.compile`` mode. Defaults to
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
        """Random images (B, 3, H, W) on the device."""
        return torch.randn(self.batch, 3, *shape, device=self.device)

    def autocast(self) -> torch.autocast:
        """Autocast context for a forward pass."""
        device = torch.device(self.device).type
        dtype = None if self.amp is None else AMP[self.amp]
        return torch.autocast(device, dtype, self.amp is not None)

    def describe(self, batches: Sequence[int] = ()) -> str:
        """Describe the setting; ``batches`` replaces its own batch size."""
        mode = self.compile_mode
        where = 'GPU' if self.on_gpu else f'CPU, {self.threads} thread'
        parts = [
            'training step' if self.train else 'inference',
            f'batch {"/".join(map(str, batches or [self.batch]))}',
            self.amp or 'float32',
            f'torch.compile ({mode})' if mode else 'eager',
            where + 's' * (not self.on_gpu and self.threads > 1),
        ]
        return ', '.join(parts)


def describe_machine(setting: Setting, command: str) -> dict[str, str]:
    """Hardware, load, versions, date and command line of a benchmark."""
    threads = torch.get_num_threads()
    load = '/'.join(f'{average:.2f}' for average in load_averages())
    properties = dict(
        CPU=f'{cpu_name()}, {torch.backends.cpu.get_cpu_capability()}',
        cores=f'{os.cpu_count()}, {threads} thread{"s" * (threads > 1)} used',
        load=f'{load} over 1/5/15 minutes at the start',
    )
    if setting.on_gpu:
        properties['GPU'] = torch.cuda.get_device_name(setting.device)
        driver = get_nvidia_driver_version(run) or 'unknown'
        properties['driver'] = f'{driver}, CUDA {torch.version.cuda}'
    return properties | dict(
        versions=', '.join(f'{k} {v}' for k, v in versions().items()),
        date=str(date.today()),
        command=command,
    )


def build(candidate: Candidate, device: str) -> nn.Module:
    """Build a model with random weights, fused for the runtime ``FUSED``.

    Logs are sent to stderr.
    """
    with redirect_stdout(sys.stderr), torch.device(device):
        model = MODELS.build(deepcopy(candidate.model))
    set_drop_path(model)
    return fuse(model) if candidate.runtime == FUSED else model


def make_step(candidate: Candidate, setting: Setting) -> Callable[[], object]:
    """Build a model and return its pass over random images."""
    model = build(candidate, setting.device)
    images = setting.images(get_image_size(model, candidate.model))
    if candidate.runtime in (ONNX, INT8):
        int8 = candidate.runtime == INT8
        return onnx_step(model, images, setting, int8)
    make = training_step if setting.train else inference_step
    return make(model, images, setting)


def get_image_size(model: nn.Module, config: dict) -> tuple[int, int]:
    """Return height and width of the images that a classifier expects.

    ``ANY_SIZE`` is used for convolutional networks, which accept any size.
    """
    settings = config.get('backbone', config)  # without one in timm's models
    if 'backbone' in config and hasattr(model.backbone, 'img_size'):
        return to_2tuple(model.backbone.img_size)
    return to_2tuple(settings.get('img_size', ANY_SIZE))


def inference_step(
    model: nn.Module, images: Tensor, setting: Setting
) -> Callable[[], Tensor]:
    """Forward pass in evaluation mode, which returns logits."""
    forward = _compiled(model.eval(), setting.compile_mode)

    @torch.inference_mode()
    def step():
        with setting.autocast():
            return forward(images)

    return step


def onnx_step(
    model: nn.Module, images: Tensor, setting: Setting, int8: bool = False
) -> Callable[[], Tensor]:
    """Forward pass of the exported model in ONNX Runtime on the CPU.

    ``int8`` quantizes matrix products with weights.
    """
    size = images.size(2), images.size(3)
    with TemporaryDirectory() as folder:
        path = Path(folder, 'model.onnx')
        if int8:
            write_onnx(model.eval(), size, path, {})
            quantize(path, path)
        else:
            write_onnx_to_time(model.eval(), size, path, len(images))
        return partial(load_onnx(path, setting.threads), images)


def training_step(
    model: nn.Module, images: Tensor, setting: Setting
) -> Callable[[], Tensor]:
    """Training step with all losses and fused AdamW; returns the loss.

    Only the forward and the backward pass are compiled.
    """
    model.train()
    labels = torch.arange(len(images), device=images.device) % 2
    # one sample with all labels: losses read only the label values
    samples = [DataSample().set_gt_label(labels)]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    half = setting.amp == 'fp16'
    # below the default 2 ** 16: overflowing gradients would skip the step
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
    require_torch(COMPILES, 'torch.compile', 'measure in eager mode')
    # require one graph: a fallback to eager would go unnoticed
    compiled = torch.compile(function, mode=mode, fullgraph=True)

    def call(images):
        # CUDA graphs in interleaved models share memory
        torch.compiler.cudagraph_mark_step_begin()
        return compiled(images)

    return call


def interleaved_seconds(
    steps: Mapping[Name, Callable[[], object]],
    setting: Setting,
    rounds: int = 15,
    warm_up: int = 2,
) -> dict[Name, list[float]]:
    """Time the passes of several models, interleaved.

    Each round runs one pass per model (A B A B), so that changing machine
    load affects all models.

    Args:
        steps (Mapping[Hashable, Callable]): One pass per model, as a function
            without arguments.
        setting (Setting): Measurement conditions.
        rounds (int): Timed passes per model. Defaults to 15.
        warm_up (int): Untimed passes per model. Defaults to 2.

    Returns:
        dict[Hashable, list[float]]: Seconds per round for each model, without
        models that exceed the GPU memory.
    """
    seconds: dict[Name, list[float]] = {name: [] for name in steps}
    for _ in range(warm_up + rounds):
        for name in tuple(seconds):
            try:
                seconds[name].append(measure_seconds(steps[name], setting))
            except torch.OutOfMemoryError:
                del seconds[name]
    return {name: values[warm_up:] for name, values in seconds.items()}


def measure_seconds(step: Callable[[], object], setting: Setting) -> float:
    """Time one pass in seconds: GPU time on a GPU, else wall-clock time."""
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
    """Time training steps to choose 'bf16', or None for float32.

    bfloat16 is chosen if it takes less than ``FASTER`` of the float32 time. It
    takes about half on processors with bfloat16 instructions.
    """
    seconds = {}
    for amp in (None, 'bf16'):
        setting = Setting(device, batch=batch, amp=amp, train=True)
        steps = {amp: make_step(Candidate('model', config), setting)}
        times = interleaved_seconds(steps, setting, rounds=2, warm_up=1)
        seconds[amp] = min(times[amp])
    return 'bf16' if seconds['bf16'] < FASTER * seconds[None] else None


def median_milliseconds(
    steps: Mapping[str, Callable], setting: Setting, rounds: int, warm_up: int
) -> dict[str, float]:
    """Median milliseconds per step; see :func:`interleaved_seconds`."""
    seconds = interleaved_seconds(steps, setting, rounds, warm_up)
    return {name: 1e3 * median(values) for name, values in seconds.items()}
