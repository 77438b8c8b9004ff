# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import time
from statistics import median

import torch
from torch import Tensor, nn


@torch.inference_mode()
def images_per_second(
    models: dict[str, nn.Module], inputs: Tensor, rounds: int = 15
) -> dict[str, float]:
    """Median inference speed of several models, timed in turns.

    One pass of each model after the other, so that a change of the machine's
    load meets all of them; the first two rounds are thrown out.

    Args:
        models (dict[str, nn.Module]): Models that take a batch of images.
        inputs (Tensor): The batch, (B, 3, H, W), on the models' device.
        rounds (int): Timed passes of each model. Defaults to 15.

    Returns:
        dict[str, float]: Images per second by the name of the model.
    """
    seconds = {name: [] for name in models}
    for _ in range(rounds + 2):
        for name, model in models.items():
            start = time.perf_counter()
            model.eval()(inputs)
            seconds[name].append(time.perf_counter() - start)
    return {k: len(inputs) / median(v[2:]) for k, v in seconds.items()}
