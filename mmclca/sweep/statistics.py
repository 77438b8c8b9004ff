# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What a finished run tells of itself beside its accuracy."""

import statistics
from math import isnan

from mmengine.runner import Runner


def throughput(runner: Runner) -> dict[str, float]:
    """Images per second of training and of testing.

    Medians over the iterations of the run itself, waiting for data included:
    other work on the machine counts.

    Args:
        runner (Runner): A runner that has trained and tested.
    """
    loaders = dict(train=runner.train_dataloader, test=runner.test_dataloader)
    return {
        mode: loader.batch_sampler.batch_size
        / statistics.median(_history(runner, f'{mode}/time'))
        for mode, loader in loaders.items()
    }


def gradients(runner: Runner) -> dict:
    """What ``GradientStatsHook`` saw: the largest magnitude of all training,
    and by epoch, of all parameters and of its parts.

    Args:
        runner (Runner): A runner that has trained.
    """
    of_part = 'epoch/grad_max_'
    names = runner.message_hub.log_scalars
    parts = [n for n in names if n.startswith(of_part)]
    per_epoch = _by_epoch(runner, 'epoch/grad_max')
    return dict(
        max=max((value for value in per_epoch if value), default=None),
        per_epoch=per_epoch,
        **{n.removeprefix(of_part): _by_epoch(runner, n) for n in parts},
    )


def _by_epoch(runner: Runner, name: str) -> list[float | None]:
    """Values with five digits; None where an epoch updated nothing."""
    values = _history(runner, name)
    return [None if isnan(v) else float(f'{v:.5g}') for v in values]


def train_time(runner: Runner, num_iters: int) -> float:
    """Seconds that the first iterations of training took.

    Args:
        runner (Runner): A runner that has trained.
        num_iters (int): How many.
    """
    return sum(_history(runner, 'train/time')[:num_iters])


def _history(runner: Runner, name: str) -> list[float]:
    return runner.message_hub.get_scalar(name).data[0].tolist()
