# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import time
from statistics import median

import torch
from torch import Tensor, nn


@torch.inference_mode()
def seconds_in_turns(
    models: dict[str, nn.Module],
    inputs: Tensor,
    rounds: int = 15,
    amp: torch.dtype | None = None,
) -> dict[str, list[float]]:
    """Seconds of each pass of several models, timed in turns.

    One pass of each model after the other, so that a change of the machine's
    load meets all of them; the first two rounds are thrown out.

    Args:
        models (dict[str, nn.Module]): Models that take a batch of images.
        inputs (Tensor): The batch, (B, 3, H, W), on the models' device.
        rounds (int): Timed passes of each model. Defaults to 15.
        amp (torch.dtype, optional): Number format of automatic mixed
            precision. Defaults to None, without.

    Returns:
        dict[str, list[float]]: A number a round, by the name of the model.
    """
    seconds = {name: [] for name in models}
    for _ in range(rounds + 2):
        for name, model in models.items():
            start = _now(inputs)
            _run(model, inputs, amp)
            seconds[name].append(_now(inputs) - start)
    return {name: values[2:] for name, values in seconds.items()}


def images_per_second(
    models: dict[str, nn.Module], inputs: Tensor, rounds: int = 15
) -> dict[str, float]:
    """Median inference speed of several models, timed in turns.

    Args:
        models (dict[str, nn.Module]): See :func:`seconds_in_turns`.
        inputs (Tensor): See there.
        rounds (int): See there. Defaults to 15.

    Returns:
        dict[str, float]: Images per second by the name of the model.
    """
    seconds = seconds_in_turns(models, inputs, rounds)
    return {k: len(inputs) / median(v) for k, v in seconds.items()}


@torch.inference_mode()
def peak_memory(
    model: nn.Module, inputs: Tensor, amp: torch.dtype | None = None
) -> int:
    """Bytes that a pass takes on a GPU, beside the weights and the images.

    Args:
        model (nn.Module): A model that takes a batch of images.
        inputs (Tensor): The batch, (B, 3, H, W), on a CUDA device.
        amp (torch.dtype, optional): See :func:`seconds_in_turns`.
    """
    torch.cuda.reset_peak_memory_stats(inputs.device)
    before = torch.cuda.memory_allocated(inputs.device)
    _run(model, inputs, amp)
    return torch.cuda.max_memory_allocated(inputs.device) - before


def _run(model: nn.Module, inputs: Tensor, amp: torch.dtype | None) -> None:
    with torch.autocast(inputs.device.type, amp, enabled=amp is not None):
        model.eval()(inputs)


def _now(inputs: Tensor) -> float:
    """The time when all that was asked of the device is done."""
    if inputs.is_cuda:
        torch.cuda.synchronize(inputs.device)
    return time.perf_counter()
