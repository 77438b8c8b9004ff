# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Latency in the deployment runtime: ONNX Runtime or PyTorch."""

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from operator import truediv

import torch

from mmclca.utils.extras import require
from mmclca.utils.messages import track, warn
from mmclca.utils.torch_versions import EXPORTS_LOOPS, has_torch, require_torch

from .candidates import ONNX, PYTORCH, Candidate
from .steps import Name, Setting, interleaved_seconds, make_step

RUNTIMES = dict(onnx='ONNX Runtime', pytorch='PyTorch')
NEEDED = 'onnx', 'onnxscript', 'onnxruntime'
ROUNDS = 20
# a machine is busy if the fastest of even and of odd passes differ this much
HALVES = 1.1
# or if the fastest pass had less than this share of a core
CORE_SHARE = 0.9


@dataclass(frozen=True)
class Passes:
    """Repeated passes of one model.

    Their minimum is robust: on a shared machine, the median can be twice as
    long even if nothing else runs.

    Args:
        seconds (list[float]): Time per pass.
        core_shares (list[float]): Processor time of the calling thread
            divided by the elapsed time, per pass; empty if unknown.
    """

    seconds: list[float]
    core_shares: list[float]

    @property
    def milliseconds(self) -> float:
        """Fastest pass in milliseconds."""
        return 1e3 * min(self.seconds)

    def describe_disturbance(self) -> str:
        """Describe why the fastest pass may be too slow; '' if it is not.

        All passes are slow if they take longer than other programs wait for
        the core. Then the fastest pass has only a part of the core.
        """
        fastest = min(self.seconds)
        halves = min(self.seconds[::2]), min(self.seconds[1::2] or [fastest])
        if max(halves) > HALVES * fastest:
            ratio = max(halves) / fastest - 1
            return f'the fastest runs of two halves differ by {ratio:.0%}'
        if self.core_shares:
            share = self.core_shares[self.seconds.index(fastest)]
            if share < CORE_SHARE:
                return f'the fastest run had {share:.0%} of a core'
        return ''


def find_runtime(runtime: str | None, device: str) -> str:
    """Select the runtime, a key in ``RUNTIMES``.

    The default is ONNX Runtime if installed, and PyTorch on a GPU, or if torch
    is too old to export every model.

    Raises:
        ImportError: If ``runtime`` is 'onnx', and a package is missing or
            torch is too old.
    """
    if runtime == 'onnx':
        require(*NEEDED, extra='deploy')
        require_torch(
            EXPORTS_LOOPS, 'latency in ONNX Runtime', 'measure it in PyTorch'
        )
    if runtime is not None:
        return runtime
    is_usable = _has_onnx_runtime(device) and has_torch(EXPORTS_LOOPS)
    return 'onnx' if is_usable else 'pytorch'


def warn_if_torch_is_old(device: str) -> None:
    """Warn if only the version of torch rules out ONNX Runtime."""
    if _has_onnx_runtime(device) and not has_torch(EXPORTS_LOOPS):
        warn(
            'latency is measured in PyTorch: ONNX Runtime needs torch '
            f'{EXPORTS_LOOPS} or later, and torch {torch.__version__} is '
            'installed'
        )


def _has_onnx_runtime(device: str) -> bool:
    on_cpu = torch.device(device).type == 'cpu'
    return on_cpu and all(map(find_spec, NEEDED))


def time_models(
    models: Mapping[Name, dict],
    runtime: str,
    device: str,
    rounds: int = ROUNDS,
) -> tuple[dict[Name, float], str]:
    """Measure the latency of one image with all PyTorch threads.

    ``models`` maps names to classifier configs. Returns the minimum of the
    interleaved repeats in milliseconds per model, and the text of
    :func:`busy_note`.
    """
    onnx = runtime == 'onnx'
    setting = Setting('cpu' if onnx else device, torch.get_num_threads(), 1)
    steps = {
        name: make_step(
            Candidate(
                str(name), models[name], runtime=ONNX if onnx else PYTORCH
            ),
            setting,
        )
        for name in track([*models], 'Measuring latency')
    }
    passes = repeat_passes(steps, setting, rounds)
    times = {name: x.milliseconds for name, x in passes.items()}
    return times, busy_note(passes)


def repeat_passes(
    steps: Mapping[Name, Callable[[], object]],
    setting: Setting,
    rounds: int = ROUNDS,
) -> dict[Name, Passes]:
    """Repeat the passes of several models, interleaved.

    With one thread on a CPU, their processor time is measured, which other
    programs hardly disturb; else the elapsed time.

    Args:
        steps (Mapping[Hashable, Callable]): One pass per model.
        setting (Setting): Measurement conditions.
        rounds (int): Passes per model. Defaults to ``ROUNDS``.

    Returns:
        dict[Hashable, Passes]: Without models that exceed the GPU memory.
    """
    cpu: dict[Name, list[float]] = {name: [] for name in steps}
    recorded = {name: _record_cpu(x, cpu[name]) for name, x in steps.items()}
    elapsed = interleaved_seconds(recorded, setting, rounds)
    if setting.on_gpu or sys.platform == 'win32':  # a coarse clock
        return {name: Passes(x, []) for name, x in elapsed.items()}
    if setting.threads == 1:
        return {name: Passes(cpu[name][-rounds:], []) for name in elapsed}
    return {
        name: Passes(x, list(map(truediv, cpu[name][-rounds:], x)))
        for name, x in elapsed.items()
    }


def _record_cpu(
    step: Callable[[], object], seconds: list[float]
) -> Callable[[], None]:
    """Return a pass that also appends its processor time to a list."""

    def recorded() -> None:
        start = time.thread_time()
        step()
        seconds.append(time.thread_time() - start)

    return recorded


def busy_note(passes: Mapping[Name, Passes]) -> str:
    """Describe a busy machine: 'machine busy (...), latency may be ...'.

    The text is empty if it is not busy.
    """
    reasons = (x.describe_disturbance() for x in passes.values())
    reason = next(filter(None, reasons), '')
    if not reason:
        return ''
    return f'machine busy ({reason}), latency may be overestimated'
