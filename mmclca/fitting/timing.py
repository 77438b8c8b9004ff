# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Time models as they will run: in ONNX Runtime or in PyTorch."""

import os
from collections.abc import Mapping
from importlib.util import find_spec
from statistics import median

import torch

from mmclca.benchmark.steps import Setting, interleaved_seconds, steps_of
from mmclca.utils.extras import require
from mmclca.utils.messages import track
from mmclca.utils.provenance import machine_name

RUNTIMES = dict(onnx='ONNX Runtime', pytorch='PyTorch')
NEEDED = 'onnx', 'onnxscript', 'onnxruntime'
ROUNDS = 20
# Where others compute, too, a repeat in the middle takes so many times the
# least, or so many processes want each core.
BUSY = 1.25


def find_runtime(given: str | None, device: str) -> str:
    """Return what a model will run in, a key of ``RUNTIMES``.

    By default ONNX Runtime where it is installed, PyTorch on a GPU.
    """
    if given == 'onnx':
        require(*NEEDED, extra='deploy')
    on_cpu = torch.device(device).type == 'cpu'
    known = on_cpu and all(map(find_spec, NEEDED))
    return given or ('onnx' if known else 'pytorch')


def time_models(
    models: Mapping, runtime: str, device: str, rounds: int = ROUNDS
) -> dict[object, dict]:
    """Time one image, interleaved, on the threads that there are.

    Of each model by its name ``ms``, the least of the repeats, which other
    processes disturb least, and ``spread``, the median divided by that.
    """
    onnx = runtime == 'onnx'
    place = 'cpu' if onnx else device
    setting = Setting(place, torch.get_num_threads(), batch=1)
    steps = {}
    for name in track([*models], 'Preparing to time'):
        steps |= steps_of({name: models[name]}, setting, onnx)
    seconds = interleaved_seconds(steps, setting, rounds)
    return {
        name: dict(ms=1e3 * min(one), spread=median(one) / min(one))
        for name, one in seconds.items()
    }


def time_beside(
    model: dict, whole: dict, runtime: str | None, device: str
) -> dict:
    """Time a model beside the whole network, for ``cost`` of the record."""
    runtime = find_runtime(runtime, device)
    models = dict(here=model) | (dict(full=whole) if whole != model else {})
    found = time_models(models, runtime, device)
    here, full = found['here'], found.get('full', found['here'])
    return dict(
        here,
        load=load_per_core(),
        ms_full=full['ms'],
        runtime=RUNTIMES[runtime],
        machine=machine_name('cpu' if runtime == 'onnx' else device),
    )


def load_per_core() -> float:
    """Count the processes that run or wait, over a minute, for each core."""
    return os.getloadavg()[0] / os.cpu_count()


def busy_note(spread: float, load: float) -> str:
    """Say that others compute on the machine; empty where nobody does."""
    why = f'repeats took {spread:.1f} times as long'
    if spread <= BUSY:
        why = f'{load:.1f} processes want each core'
    if max(spread, load) <= BUSY:
        return ''
    return f'; the machine is busy ({why}): on an idle one it may be faster'
