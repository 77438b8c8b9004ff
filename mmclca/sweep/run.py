# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Run one cell: train, test, and write the result."""

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
from mmclca.utils.files import remove_partial_files, replace_text
from mmclca.utils.folders import refuse_links
from mmclca.utils.provenance import provenance

from .compose import Cell
from .results import config_hash, read_result, set_aside

# outcomes of running a cell
DONE, TAKEN = 'done', 'skipped, running in another process'
# the operating system releases the lock when the process ends
LOCK = 'cell.lock'


def run_cell(
    cell: Cell,
    cfg: Config,
    root: Path,
    gpu: int,
    threads: int,
    keep_checkpoints: bool,
) -> str:
    """Run a cell unless it is finished or locked by another process.

    An interrupted run is resumed. The result is written to
    ``<root>/<name>.json``, the config to ``<root>/<name>/<hash>``. ``gpu`` is
    a GPU number, ignored without CUDA. Returns ``DONE`` or, if locked,
    ``TAKEN``; raises an Error if the existing result has another config.
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


# submitit calls this to requeue a preempted job
run_cell.checkpoint = partial(DelayedSubmission, run_cell)


def _run(cell: Cell, cfg: Config, root: Path, keep_checkpoints: bool) -> None:
    """Measure a cell and write its result, unless the result exists."""
    digest, path = config_hash(cfg), root / f'{cell.name}.json'
    if read_result(path, digest):
        return
    if path.exists():
        set_aside(path)
    refuse_links(root, [cell.name])
    folder = root / cell.name / digest
    remove_partial_files(folder)  # of killed processes
    draft, work_dir = folder / 'result.json', folder / 'work_dir'
    if not read_result(draft, digest):
        replace_text(folder / 'config.py', cfg.pretty_text)
        # reading the file runs its custom imports
        cfg = Config.fromfile(folder / 'config.py')
        result = dict(cell=asdict(cell), **measure_cell(cfg, work_dir))
        replace_text(draft, json.dumps(result, indent=1) + '\n')
    if not keep_checkpoints:
        for file in (*work_dir.glob('*.pth'), work_dir / 'last_checkpoint'):
            file.unlink(missing_ok=True)
    draft.replace(path)  # after it, nothing is removed


def measure_cell(cfg: Config, work_dir: Path) -> dict:
    """Train and test a config; return the result without its cell.

    The config is changed in place. The work dir must belong to this config
    only.
    """
    origin = provenance()
    digest, resumed = config_hash(cfg), datetime.now(timezone.utc)
    started = _first_start(work_dir, resumed)
    clock = time.perf_counter()
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
    seconds = time.perf_counter() - clock
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
        # include the iterations before the resume; the clock may have jumped
        seconds=seconds
        + num_iters * statistics.median(_history(runner, 'train/time')),
        # sum over all threads; unknown for a resumed run
        cpu_seconds=None if num_iters else cpu_seconds,
    )


def _first_start(work_dir: Path, started: datetime) -> datetime:
    """Start time of a run, stored for later resumes."""
    note = work_dir / 'started.txt'
    if note.exists():
        return datetime.fromisoformat(note.read_text())
    replace_text(note, started.isoformat())
    return started


def throughput(runner: Runner) -> dict[str, float]:
    """Images per second in training and in testing.

    Medians over the iterations of the run, including data loading and load
    from other processes.
    """
    loaders = dict(train=runner.train_dataloader, test=runner.test_dataloader)
    return {
        mode: loader.batch_sampler.batch_size
        / statistics.median(_history(runner, f'{mode}/time'))
        for mode, loader in loaders.items()
    }


def gradients(runner: Runner) -> dict:
    """Largest gradient magnitudes logged by ``GradientStatsHook``.

    ``max`` over the run, ``per_epoch`` maxima, and epoch maxima per part.
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
    """Epoch values with five digits; None for epochs without updates."""
    values = _history(runner, name)
    return [None if isnan(v) else float(f'{v:.5g}') for v in values]


def _history(runner: Runner, name: str) -> list[float]:
    return runner.message_hub.get_scalar(name).data[0].tolist()
