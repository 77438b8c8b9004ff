# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Outcomes of jobs, and submitit options; Slurm commands are replaced."""

import json
import re
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from mmengine.config import Config
from sweep_results import KEY, make_task, result_of

from mmclca.cli.commands.sweep import plan
from mmclca.sweep import jobs
from mmclca.sweep.execution import DONE, TAKEN
from mmclca.sweep.grid import Grid
from mmclca.sweep.results import config_hash
from mmclca.utils.files import replace_text

KEYS = [replace(KEY, seed=seed) for seed in range(5)]
BROKEN = RuntimeError('no memory')
CFG = Config(dict(model=1))


class Job:
    """Job that is done at the second status check."""

    def __init__(self, ending):
        self.ending = ending
        self.looks = 0

    def done(self):
        self.looks += 1
        return self.looks > 1

    def exception(self):
        return None if isinstance(self.ending, str) else self.ending

    def result(self):
        return self.ending

    def cancel(self):
        """Do nothing."""


class Executor:
    """Executor without processes; ``endings(key, try)`` sets outcomes."""

    def __init__(self, folder, endings):
        self.folder = folder
        self.endings = endings
        self.tries = Counter()
        self.arrays = []

    def map_array(self, _, tasks):
        keys = [task.run.key for task in tasks]
        self.tries.update(keys)
        ends = [self.endings(key, self.tries[key]) for key in keys]
        self.arrays.append([Job(end) for end in ends])
        return self.arrays[-1]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run KEYS; return tasks without a result and the executor."""
    monkeypatch.setattr(jobs, 'POLL', 0)
    monkeypatch.setattr(jobs, 'in_new_folder', lambda executor: executor)

    def run(endings, slots=2):
        executor = Executor(tmp_path, endings)
        tasks = [make_task(CFG, tmp_path, key) for key in KEYS]
        return jobs.run_all(executor, tasks, slots), executor

    return run


def test_tasks_run_in_limited_slots(run, capsys):
    left, executor = run(lambda *_: DONE)
    assert left == [] and list(executor.tries) == KEYS
    assert [len(array) for array in executor.arrays] == [2, 1, 1, 1]
    assert f'{KEYS[4].name}: done' in capsys.readouterr().out


def test_arrays_are_limited_to_the_maximum_size(run, monkeypatch):
    monkeypatch.setattr(jobs, 'MAX_ARRAY', 3)
    left, executor = run(lambda *_: DONE, slots=3)
    assert [len(array) for array in executor.arrays] == [3, 2]


@pytest.mark.parametrize('ending', [BROKEN, TAKEN])
def test_tasks_without_a_result_are_retried_once(run, ending):
    left, executor = run(
        lambda key, n: ending if key.seed == 1 and n == 1 else DONE
    )
    assert left == [] and executor.tries[KEYS[1]] == 2
    assert executor.tries.total() == 6
    left, executor = run(lambda key, _: DONE if key.seed else ending)
    ((task, job),) = left
    assert (task.run.key, job.ending) == (KEYS[0], ending)
    assert executor.tries.total() == 6


def test_jobs_are_cancelled_if_sweep_is_interrupted(run, monkeypatch):
    def stop(self):
        raise KeyboardInterrupt

    cancelled = []
    monkeypatch.setattr(Job, 'result', stop)
    monkeypatch.setattr(Job, 'cancel', lambda job: cancelled.append(job))
    with pytest.raises(KeyboardInterrupt):
        run(lambda *_: DONE)
    assert len(cancelled) == 1  # the other job has ended


@pytest.mark.parametrize(
    'named, numbers',
    [('2,3', [2, 3]), ('1', [1]), ('', []), (None, []), ('-1', [])],
)
def test_visible_gpus_follow_the_environment(monkeypatch, named, numbers):
    monkeypatch.setattr(torch.cuda, 'device_count', lambda: 0)
    monkeypatch.delenv('CUDA_VISIBLE_DEVICES', raising=False)
    if named is not None:
        monkeypatch.setenv('CUDA_VISIBLE_DEVICES', named)
    assert jobs.list_visible_gpus() == numbers


def test_visible_gpus_are_refused_if_not_numbers(monkeypatch):
    monkeypatch.setenv('CUDA_VISIBLE_DEVICES', 'GPU-1f')
    with pytest.raises(ValueError, match='CUDA_VISIBLE_DEVICES'):
        jobs.list_visible_gpus()


def planned(folder, executor, **changes):
    """Plan the jobs for KEYS as the command does."""
    given = dict(jobs=2, threads=None, executor_options={})
    args = SimpleNamespace(executor=executor, **{**given, **changes})
    runs = [make_task(CFG, folder, key).run for key in KEYS]
    return plan(args, folder, Grid(runs, False), dict.fromkeys(KEYS, CFG))


def test_local_jobs_share_gpus_and_threads(tmp_path, monkeypatch):
    monkeypatch.setenv('CUDA_VISIBLE_DEVICES', '0,3')
    monkeypatch.setattr('os.cpu_count', lambda: 8)
    options = dict(timeout_min=9)
    _, tasks = planned(tmp_path, 'local', executor_options=options)
    assert [task.gpu for task in tasks] == [0, 3, 0, 3, 0]
    assert {task.threads for task in tasks} == {4}
    settings = jobs.get_job_options('local', 2, [0, 3])
    assert settings['gpus_per_node'] == 4  # jobs see 0 to 3
    with pytest.raises(ValueError, match='bogus'):
        planned(tmp_path, 'local', executor_options=dict(local_bogus=3))


def test_slurm_is_refused_if_not_installed(tmp_path, monkeypatch):
    monkeypatch.setenv('PATH', str(tmp_path))
    with pytest.raises(ValueError, match='srun'):
        planned(tmp_path, 'slurm')


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Install fake Slurm commands, which accept jobs without running them."""
    commands = dict(
        srun='exit 0',
        sbatch=f'cp "$1" {tmp_path}/sent.sh; echo Submitted batch job 77',
        sacct='echo "JobID|State"',
    )
    (tmp_path / 'bin').mkdir()
    for name, text in commands.items():
        path = tmp_path / 'bin' / name
        path.write_text(f'#!/bin/sh\n{text}\n')
        path.chmod(0o755)
    path = f'{tmp_path / "bin"}:/usr/bin:/bin'
    monkeypatch.setenv('PATH', path)
    return tmp_path


@pytest.mark.parametrize(
    'options, cpus', [({}, 4), ({'slurm_cpus_per_task': 8}, 8)]
)
def test_tasks_are_submitted_as_one_slurm_array(slurm, options, cpus):
    options = {'slurm_partition': 'gpu', 'timeout_min': 600, **options}
    executor, tasks = planned(slurm, 'slurm', executor_options=options)
    assert {task.threads for task in tasks} == {cpus}
    sent = executor.map_array(jobs.run_one, tasks)
    assert [job.job_id for job in sent] == [f'77_{n}' for n in range(5)]
    text = (slurm / 'sent.sh').read_text()
    settings = dict(re.findall(r'^#SBATCH --([\w-]+)=(\S+)', text, re.M))
    assert settings['array'] == '0-4%2'
    assert settings['partition'] == 'gpu'
    assert settings['time'] == '600'
    assert settings['gpus-per-node'] == '1'
    assert settings['cpus-per-task'] == str(cpus)
    # run a job of the array from its pickled function and arguments
    key = KEYS[1]
    done = result_of(key, config_hash=config_hash(CFG))
    replace_text(slurm / f'{key.name}.json', json.dumps(done))
    assert sent[1].submission().result() == DONE
