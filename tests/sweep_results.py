# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Artificial sweep results."""

from dataclasses import asdict, replace

from mmclca.sweep.compose import Cell

CELL = Cell('leaf40', 'deit-tiny-p16', 'EViT', 0.25, 224, 'clca', 1)


def result(
    accuracy=80.0,
    gmacs=0.5,
    gradients=(4.0, 2.0, 1.0),
    seconds=231.0,
    memory=1503.2,
    **cell,
):
    """Make the result of a cell; ``cell`` replaces fields of ``CELL``."""
    return dict(
        cell=asdict(replace(CELL, **dict(dict(clca='base'), **cell))),
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


def result_of(cell=CELL, **changes):
    """Make the result of a cell with changed values."""
    return result(**asdict(cell)) | changes


def seeds(*accuracies, **more):
    """Make results of a cell, one accuracy per seed."""
    return [
        result(accuracy, seed=seed, **more)
        for seed, accuracy in enumerate(accuracies, start=1)
    ]
