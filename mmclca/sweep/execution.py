# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Train and test one run, and write its result."""

import json
import statistics
import time
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from functools import partial
from math import isnan
from pathlib import Path

import torch
from filelock import FileLock, Timeout
from mmengine.config import Config
from mmengine.runner import Runner
from submitit.helpers import DelayedSubmission

from mmclca.benchmark.peak_memory import get_peak_memory
from mmclca.checkpoints.gate.folders import refuse_links
from mmclca.checkpoints.resuming import newest_checkpoint
from mmclca.engine.runner import build_runner
from mmclca.evaluation.cost import count_config
from mmclca.utils.files import remove_partial_files, replace_text
from mmclca.utils.provenance import provenance

from .config_file import write_config
from .results import config_hash, read_result, set_aside
from .runs import Run

# outcomes of a task
DONE, TAKEN = 'done', 'skipped, running in another process'
# the operating system releases the lock when the process ends
LOCK = 'run.lock'


@dataclass(frozen=True)
class Task:
    """A run with the conditions of its process.

    Args:
        run (Run): The run.
        config (Config): Its composed config.
        root (Path): Folder of the sweep. The result is written to
            ``<root>/<name>.json``, the config to ``<root>/<name>/<hash>``.
        gpu (int): GPU number, ignored without CUDA. Defaults to 0.
        threads (int): CPU threads. Defaults to 1.
        keep_checkpoints (bool): Whether checkpoints stay after the run.
            Defaults to False.
    """

    run: Run
    config: Config
    root: Path
    gpu: int = 0
    threads: int = 1
    keep_checkpoints: bool = False

    @property
    def name(self) -> str:
        """Name of the run."""
        return self.run.key.name


def run_one(task: Task) -> str:
    """Train and test a run, unless it is finished or locked.

    An interrupted run is resumed.

    Returns:
        str: ``DONE`` or, if another process has locked the run, ``TAKEN``.

    Raises:
        Error: If the existing result has another config.
    """
    folder = task.root / task.name
    folder.mkdir(parents=True, exist_ok=True)
    try:
        lock = FileLock(folder / LOCK).acquire(timeout=0)
    except Timeout:
        return TAKEN
    with lock:
        torch.set_num_threads(task.threads)
        if torch.cuda.is_available():
            torch.cuda.set_device(task.gpu)
        _measure_once(task)
    return DONE


# submitit calls this to requeue a preempted job
run_one.checkpoint = partial(DelayedSubmission, run_one)  # type: ignore[attr-defined]


def _measure_once(task: Task) -> None:
    """Measure a run and write its result, unless the result exists."""
    digest = config_hash(task.config)
    path = task.root / f'{task.name}.json'
    if read_result(path, digest):
        return
    if path.exists():
        set_aside(path)
    refuse_links(task.root, [task.name])
    folder = task.root / task.name / digest
    remove_partial_files(folder)  # of killed processes
    draft, work_dir = folder / 'result.json', folder / 'work_dir'
    if not read_result(draft, digest):
        # reading the file runs its custom imports
        cfg = write_config(task.run, task.config, folder / 'config.py')
        result = dict(run=asdict(task.run.key), **measure(cfg, work_dir))
        replace_text(draft, json.dumps(result, indent=1) + '\n')
    if not task.keep_checkpoints:
        for file in (*work_dir.glob('*.pth'), work_dir / 'last_checkpoint'):
            file.unlink(missing_ok=True)
    draft.replace(path)  # after it, nothing is removed


def measure(cfg: Config, work_dir: Path) -> dict:
    """Train and test a config; return the result without its key.

    The config is changed in place. The work dir must belong to this config
    only.
    """
    origin = provenance()
    digest, start_file = config_hash(cfg), work_dir / 'started.txt'
    if not start_file.exists():  # else the run is resumed
        replace_text(start_file, datetime.now(timezone.utc).isoformat())
    started = datetime.fromisoformat(start_file.read_text('utf-8'))
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
        throughput=get_throughput(runner),
        peak_memory_mb=get_peak_memory(),
        gradients=get_gradients(runner),
        **origin,
        started=started.isoformat(timespec='seconds'),
        finished=finished.isoformat(timespec='seconds'),
        # include the iterations before the resume; the clock may have jumped
        seconds=seconds
        + num_iters * statistics.median(_get_history(runner, 'train/time')),
        # sum over all threads; unknown for a resumed run
        cpu_seconds=None if num_iters else cpu_seconds,
    )


def get_throughput(runner: Runner) -> dict[str, float]:
    """Images per second in training and in testing.

    Medians over the iterations of the run, including data loading and load
    from other processes.
    """
    loaders = dict(train=runner.train_dataloader, test=runner.test_dataloader)
    return {
        mode: loader.batch_sampler.batch_size
        / statistics.median(_get_history(runner, f'{mode}/time'))
        for mode, loader in loaders.items()
    }


def get_gradients(runner: Runner) -> dict:
    """Largest gradient magnitudes logged by ``GradientStatsHook``.

    ``max`` over the run, ``per_epoch`` maxima, and epoch maxima per part.
    """
    prefix = 'epoch/grad_max_'
    per_epoch = _get_epoch_values(runner, 'epoch/grad_max')
    by_part = {
        name.removeprefix(prefix): _get_epoch_values(runner, name)
        for name in runner.message_hub.log_scalars
        if name.startswith(prefix)
    }
    largest = max((value for value in per_epoch if value), default=None)
    return dict(max=largest, per_epoch=per_epoch, **by_part)


def _get_epoch_values(runner: Runner, name: str) -> list[float | None]:
    """Epoch values with five digits; None for epochs without updates."""
    values = _get_history(runner, name)
    return [None if isnan(v) else float(f'{v:.5g}') for v in values]


def _get_history(runner: Runner, name: str) -> list[float]:
    return runner.message_hub.get_scalar(name).data[0].tolist()
