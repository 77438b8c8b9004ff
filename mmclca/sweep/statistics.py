# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What a finished run tells of itself beside its accuracy."""

import statistics

import torch
from mmengine.runner import Runner

from mmclca.benchmark.memory import PROCESS, resident


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
    scalars = runner.message_hub.log_scalars
    prefix = 'train/grad_max'
    parts = [n.removeprefix(f'{prefix}_') for n in scalars if prefix in n]
    parts = [p for p in parts if p not in (prefix, 'mean', 'std')]
    per_epoch = _by_epoch(runner, prefix)
    return dict(
        max=max(per_epoch),
        per_epoch=per_epoch,
        **{part: _by_epoch(runner, f'{prefix}_{part}') for part in parts},
    )


def _by_epoch(runner: Runner, name: str) -> list[float]:
    """The largest value in each epoch, with five digits."""
    values = _history(runner, name)
    size = -(-len(values) // runner.max_epochs)
    starts = range(0, len(values), size)
    return [float(f'{max(values[s : s + size]):.5g}') for s in starts]


def _history(runner: Runner, name: str) -> list[float]:
    return runner.message_hub.get_scalar(name).data[0].tolist()


def peak_memory() -> float | None:
    """Peak of memory in MiB: of the GPU where there is one, else of the
    process, which only Linux tells."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 2**20
    known = PROCESS.joinpath('status').exists()
    return resident('VmHWM') / 2**20 if known else None
