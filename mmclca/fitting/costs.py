# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What models cost, counted, and timed on this machine."""

from collections.abc import Callable, Mapping

import torch

from mmclca.benchmark.interleaved import median_milliseconds, steps_of
from mmclca.benchmark.setting import Setting
from mmclca.benchmark.steps import inference_step, onnx_step
from mmclca.evaluation.cost import count_config
from mmclca.utils.extras import are_there
from mmclca.utils.provenance import cpu_name

from .classifier import plain_model
from .job import Job

ROUNDS = 9
OWN, FULL = '', '_full'
RUNTIME = ('onnx', 'onnxscript', 'onnxruntime')  # the extra deploy


def gmacs(model: dict) -> float:
    """1e9 multiply-accumulates of one image.

    Args:
        model (dict): Config of a classifier.
    """
    return count_config(model).flops / 1e9


def milliseconds(
    models: Mapping[str, dict],
    device: str,
    rounds: int = ROUNDS,
    make: Callable = inference_step,
) -> dict[str, float]:
    """Median time of one image, interleaved, at batch 1.

    Args:
        models (Mapping[str, dict]): Configs of classifiers by name.
        device (str): Where they run.
        rounds (int): Timed passes of each. Defaults to ``ROUNDS``.
        make (Callable): See :func:`steps_of`.
    """
    setting = _setting(device)
    steps = steps_of(models, setting, make)
    return median_milliseconds(steps, setting, rounds)


def _setting(device: str) -> Setting:
    return Setting(device=device, threads=torch.get_num_threads(), batch=1)


def machine_name(device: str) -> str:
    """Where milliseconds were measured, in words.

    Args:
        device (str): Where the models ran.
    """
    setting = _setting(device)
    if setting.on_gpu:
        return torch.cuda.get_device_name(device)
    threads = f'{setting.threads} thread{"s" * (setting.threads > 1)}'
    return f'{cpu_name()}, {threads}'


def measure_costs(job: Job, with_onnx: bool) -> None:
    """Count and time both, unless that was done.

    Args:
        job (Job): The fit; its facts get ``cost``.
        with_onnx (bool): Whether ONNX Runtime is timed too, where it is
            installed, which takes some time.
    """
    cost, img_size = job.facts['cost'], job.variant.img_size
    models = {OWN: job.config.model}
    if job.variant.out_type:
        number = len(job.classes)
        models[FULL] = plain_model(job.pretrained, img_size, number)
    if cost['gmacs'] is None:
        counted = {name: count_config(x) for name, x in models.items()}
        cost.update(
            _named('gmacs', {n: c.flops / 1e9 for n, c in counted.items()})
        )
        cost['params'] = counted[OWN].params
        cost.update(_named('ms', milliseconds(models, job.device)))
        cost['machine'] = machine_name(job.device)
    if with_onnx and cost['ms_onnx'] is None and are_there(*RUNTIME):
        timed = milliseconds(models, 'cpu', make=onnx_step)
        cost.update(_named('ms_onnx', timed))
    job.save()


def _named(name: str, values: dict) -> dict:
    """Of the model, and of the whole network where that is another one."""
    both = {FULL: values[OWN], **values}
    return {f'{name}{which}': value for which, value in both.items()}
