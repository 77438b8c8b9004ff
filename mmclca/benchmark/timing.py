# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Latency in the deployment runtime: ONNX Runtime or PyTorch."""

import os
from collections.abc import Hashable, Mapping
from importlib.util import find_spec
from statistics import median

import torch

from mmclca.utils.extras import require
from mmclca.utils.messages import track

from .candidates import ONNX
from .steps import Setting, interleaved_seconds, step_of_config

RUNTIMES = dict(onnx='ONNX Runtime', pytorch='PyTorch')
NEEDED = 'onnx', 'onnxscript', 'onnxruntime'
ROUNDS = 20
# a machine is busy above this ratio of median to minimum time, or above this
# load per core
BUSY = 1.25


def find_runtime(given: str | None, device: str) -> str:
    """Select the runtime, a key in ``RUNTIMES``.

    The default is ONNX Runtime if installed, and PyTorch on a GPU.
    """
    if given == 'onnx':
        require(*NEEDED, extra='deploy')
    on_cpu = torch.device(device).type == 'cpu'
    known = on_cpu and all(map(find_spec, NEEDED))
    return given or ('onnx' if known else 'pytorch')


def time_models(
    models: Mapping[Hashable, dict],
    runtime: str,
    device: str,
    rounds: int = ROUNDS,
) -> tuple[dict[Hashable, float], str]:
    """Measure the latency of one image with all PyTorch threads.

    ``models`` maps names to classifier configs. Returns the minimum of the
    interleaved repeats in milliseconds per model, which other processes
    disturb least, and the text of :func:`busy_note`.
    """
    onnx = runtime == 'onnx'
    setting = Setting('cpu' if onnx else device, torch.get_num_threads(), 1)
    steps = {
        name: step_of_config(models[name], setting, ONNX if onnx else '')
        for name in track([*models], 'Measuring latency')
    }
    found = interleaved_seconds(steps, setting, rounds)
    spread = max(median(one) / min(one) for one in found.values())
    load = os.getloadavg()[0] / os.cpu_count()  # one-minute average
    times = {name: 1e3 * min(one) for name, one in found.items()}
    return times, busy_note(spread, load)


def busy_note(spread: float, load: float) -> str:
    """Note to append to a line if the machine is busy, else an empty text.

    It begins with a semicolon: '; machine busy (load 2.0 per core), ...'.
    ``spread`` is the median time divided by the minimum time, and ``load``
    the load average per core.
    """
    if max(spread, load) <= BUSY:
        return ''
    why = f'load {load:.1f} per core'
    if spread > BUSY:
        why = f'the median run took {spread:.1f} times the fastest'
    return f'; machine busy ({why}), latency may be overestimated'
