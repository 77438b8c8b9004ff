# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Run one cell: train, test, and write what came of it."""

import json
import statistics
import time
from dataclasses import asdict
from datetime import datetime, timezone
from functools import partial
from math import isnan
from pathlib import Path

import torch
from filelock import FileLock, Timeout
from mmengine.config import Config
from mmengine.runner import Runner
from submitit.helpers import DelayedSubmission

from mmclca.benchmark.memory import peak_so_far
from mmclca.checkpoints.opening import safe_loading
from mmclca.checkpoints.resuming import newest_checkpoint
from mmclca.engine.runner import build_runner
from mmclca.evaluation.cost import count_config
from mmclca.utils.files import replace_text
from mmclca.utils.folders import refuse_links
from mmclca.utils.provenance import provenance

from .compose import Cell
from .results import config_hash, read_result, set_aside

# what a run of a cell comes to
DONE, TAKEN = 'done', 'skipped, running in another process'
# a lock of the operating system, which ends with the process that holds it
LOCK = 'cell.lock'


def run_cell(
    cell: Cell,
    cfg: Config,
    root: Path,
    gpu: int,
    threads: int,
    keep_checkpoints: bool,
) -> str:
    """Run a cell, unless it is finished or another process has it.

    What an interrupted run left is gone on from.

    Args:
        cell (Cell): The cell.
        cfg (Config): Its config, written to ``<root>/<name>/<hash>``.
        root (Path): Folder of the sweep.
        gpu (int): Which GPU to use, where there are any.
        threads (int): Threads to compute with on the CPU.
        keep_checkpoints (bool): Whether the last checkpoints stay.

    Returns:
        str: ``DONE``, there is a result, or ``TAKEN``.

    Raises:
        ValueError: If there is a result of another config.
    """
    folder = root / cell.name
    folder.mkdir(parents=True, exist_ok=True)
    try:
        lock = FileLock(folder / LOCK).acquire(timeout=0)
    except Timeout:
        return TAKEN
    with lock, safe_loading():
        torch.set_num_threads(threads)
        if torch.cuda.is_available():
            torch.cuda.set_device(gpu)
        _run(cell, cfg, root, keep_checkpoints)
    return DONE


# what submitit calls where a cluster ends a job before its time
run_cell.checkpoint = partial(DelayedSubmission, run_cell)


def _run(cell: Cell, cfg: Config, root: Path, keep_checkpoints: bool) -> None:
    """Make the result of a cell, unless it is there."""
    digest, path = config_hash(cfg), root / f'{cell.name}.json'
    if read_result(path, digest):
        return
    if path.exists():
        set_aside(path)
    refuse_links(root, [cell.name])
    folder = root / cell.name / digest
    replace_text(folder / 'config.py', cfg.pretty_text)
    # reading it imports the modules that it names
    cfg, work_dir = Config.fromfile(folder / 'config.py'), folder / 'work_dir'
    # only here is it chosen how a cell is measured: all are trained
    result = dict(cell=asdict(cell), **measure_cell(cfg, work_dir))
    replace_text(path, json.dumps(result, indent=1) + '\n')
    if not keep_checkpoints:
        for file in (*work_dir.glob('*.pth'), work_dir / 'last_checkpoint'):
            file.unlink(missing_ok=True)


def measure_cell(cfg: Config, work_dir: Path) -> dict:
    """Train and test what a config says.

    Args:
        cfg (Config): The config, changed in place.
        work_dir (Path): For logs and checkpoints, of this config alone.

    Returns:
        dict: A result but for its cell, ready for JSON.
    """
    origin = provenance()
    digest, resumed = config_hash(cfg), datetime.now(timezone.utc)
    started = _first_start(work_dir, resumed)
    cost = count_config(cfg.model)
    latest, num_iters = newest_checkpoint(work_dir)
    cfg.work_dir = str(work_dir)
    cfg.load_from, cfg.resume = latest or cfg.load_from, latest is not None
    runner = build_runner(cfg)
    began = time.process_time()
    runner.train()
    cpu_seconds = time.process_time() - began
    metrics = runner.test()
    finished = datetime.now(timezone.utc)
    seconds = (finished - resumed).total_seconds()
    return dict(
        config_hash=digest,
        accuracy=metrics['accuracy/top1'],
        metrics={name: float(value) for name, value in metrics.items()},
        gmacs=cost.flops / 1e9,
        params=cost.params,
        throughput=throughput(runner),
        peak_memory_mb=peak_so_far(),
        gradients=gradients(runner),
        **origin,
        started=started.isoformat(timespec='seconds'),
        finished=finished.isoformat(timespec='seconds'),
        # and of the iterations of before
        seconds=seconds + sum(_history(runner, 'train/time')[:num_iters]),
        # of all threads; not of a run that was interrupted
        cpu_seconds=None if num_iters else cpu_seconds,
    )


def _first_start(work_dir: Path, started: datetime) -> datetime:
    """Return when a run began, noted at its first part."""
    note = work_dir / 'started.txt'
    if note.exists():
        return datetime.fromisoformat(note.read_text())
    replace_text(note, started.isoformat())
    return started


def throughput(runner: Runner) -> dict[str, float]:
    """Return images per second of training and of testing.

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
    """Read the log of ``GradientStatsHook``: the largest magnitude of all,
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


def _history(runner: Runner, name: str) -> list[float]:
    return runner.message_hub.get_scalar(name).data[0].tolist()
