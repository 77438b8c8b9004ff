# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Artificial sweep results."""

from dataclasses import asdict, replace

from mmclca.models import Variant
from mmclca.sweep.execution import Task
from mmclca.sweep.runs import Run, RunKey

KEY = RunKey('leaf40', 'deit-tiny-p16', 'EViT', 0.25, 224, 'clca', 1)


def compose(key, options={}, weights={}):
    """Compose the config of a run."""
    return Run.from_key(key, options=options, weights=weights).compose()


def make_task(cfg, root, key=KEY, **conditions):
    """Make the task of a run that has a config without base configs."""
    return Task(Run(key, (), {}, Variant()), cfg, root, **conditions)


def result(
    accuracy=80.0,
    gmacs=0.5,
    gradients=(4.0, 2.0, 1.0),
    seconds=231.0,
    memory=1503.2,
    **key,
):
    """Make the result of a run; ``key`` replaces fields of ``KEY``."""
    return dict(
        run=asdict(replace(KEY, **dict(dict(clca='base'), **key))),
        config_hash='0123456789abcdef',
        accuracy=accuracy,
        gmacs=gmacs,
        params=5540000,
        throughput=dict(train=31.0, test=95.0),
        peak_memory_mb=memory,
        gradients=dict(max=max(gradients), per_epoch=list(gradients)),
        commit='189de4f',
        versions=dict(torch='2.15.0'),
        machine='a machine',
        started='2026-11-21T12:00:00+00:00',
        finished='2026-11-21T12:04:00+00:00',
        seconds=seconds,
    )


def result_of(key=KEY, **changes):
    """Make the result of a run with changed values."""
    return result(**asdict(key)) | changes


def seeds(*accuracies, **more):
    """Make results of a run, one accuracy per seed."""
    return [
        result(accuracy, seed=seed, **more)
        for seed, accuracy in enumerate(accuracies, start=1)
    ]
