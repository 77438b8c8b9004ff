# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What submitit is told, its Slurm commands replaced by ones that note it."""

import json
import re
from dataclasses import replace

import pytest
import torch
from mmengine.config import Config
from sweep_results import CELL, result_of

from mmclca.sweep.executors import (
    local_executor,
    slurm_cpus,
    slurm_executor,
    visible_gpus,
)
from mmclca.sweep.launcher import Launcher
from mmclca.utils.atomic_write import replace_text

CELLS = [replace(CELL, seed=seed) for seed in range(3)]


@pytest.mark.parametrize(
    'named, numbers',
    [('2,3', [2, 3]), ('1', [1]), ('', []), (None, []), ('-1', [])],
)
def test_jobs_keep_to_the_gpus_that_may_be_used(monkeypatch, named, numbers):
    monkeypatch.setattr(torch.cuda, 'device_count', lambda: 0)
    monkeypatch.delenv('CUDA_VISIBLE_DEVICES', raising=False)
    if named is not None:
        monkeypatch.setenv('CUDA_VISIBLE_DEVICES', named)
    assert visible_gpus() == numbers


def test_gpus_that_submitit_cannot_take(monkeypatch):
    monkeypatch.setenv('CUDA_VISIBLE_DEVICES', 'GPU-1f')
    with pytest.raises(ValueError, match='name GPUs by numbers'):
        visible_gpus()


def test_processes_of_this_machine(tmp_path):
    executor = local_executor(tmp_path, {'timeout_min': 9}, [2, 3])
    assert executor.parameters['timeout_min'] == 9
    assert executor.parameters['visible_gpus'] == [2, 3]
    assert executor.parameters['gpus_per_node'] == 2
    with pytest.raises(ValueError, match='bogus is nothing that processes'):
        local_executor(tmp_path, {'bogus': 3}, [])


def test_no_slurm(tmp_path, monkeypatch):
    monkeypatch.setenv('PATH', str(tmp_path))
    with pytest.raises(ValueError, match='--executor slurm: .*srun'):
        slurm_executor(tmp_path, {}, 2)


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """A folder in which a Slurm seems to be: it takes jobs and runs none."""
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


def test_an_unknown_option_of_slurm(slurm):
    with pytest.raises(ValueError, match='slurm_bogus'):
        slurm_executor(slurm, {'slurm_bogus': 3}, 2)


def test_cells_are_one_array_of_slurm_jobs(slurm):
    options = {'slurm_partition': 'gpu', 'timeout_min': 600}
    configs = dict.fromkeys(CELLS, Config(dict(model=1)))
    launcher = Launcher(
        slurm_executor(slurm / 'jobs', options, 2), slurm, configs, 3
    )
    jobs = launcher.launch(CELLS)
    assert list(jobs) == CELLS
    assert [job.job_id for job in jobs.values()] == ['77_0', '77_1', '77_2']
    sent = (slurm / 'sent.sh').read_text()
    settings = dict(re.findall(r'^#SBATCH --([\w-]+)=(\S+)', sent, re.M))
    assert settings['array'] == '0-2%2'
    assert settings['partition'] == 'gpu'
    assert settings['time'] == '600'
    assert settings['gpus-per-node'] == '1'
    assert settings['cpus-per-task'] == '4'
    for cell, digest in launcher.digests.items():
        assert (slurm / cell.name / digest / 'config.py').exists()


@pytest.mark.parametrize(
    'options, number',
    [({}, 4), ({'cpus_per_task': 2}, 2), ({'slurm_cpus_per_task': 8}, 8)],
)
def test_cpus_of_a_slurm_job(options, number):
    assert slurm_cpus(options) == number


def test_what_is_sent_runs(slurm, monkeypatch):
    """The function and arguments that a job of an array unpickles."""
    configs = dict.fromkeys(CELLS, Config(dict(model=1)))
    launcher = Launcher(slurm_executor(slurm, {}, 2), slurm, configs, 3)
    jobs = launcher.launch(CELLS)
    cell = CELLS[1]
    done = result_of(cell, config_hash=launcher.digests[cell])
    replace_text(slurm / f'{cell.name}.json', json.dumps(done))
    assert jobs[cell].submission().result() == 'done'
