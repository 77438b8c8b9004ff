# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Results of a sweep that nobody ran."""

from dataclasses import asdict

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
    """A result as a run of a cell leaves it.

    Args:
        accuracy (float): Top-1 in per cent.
        gmacs (float): 10^9 multiply-accumulates.
        gradients (Sequence[float]): The largest of each epoch.
        seconds (float): How long it took.
        memory (float | None): Its peak in MiB.
        **cell: What the cell does not share with leaf40's.
    """
    default = dict(
        dataset='leaf40',
        backbone='deit-tiny-p16',
        method='EViT',
        keep_rate=0.25,
        size=224,
        clca='base',
        variant='',
        seed=1,
    )
    assert cell.keys() <= default.keys(), cell
    return dict(
        cell={**default, **cell},
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
    """A result of a cell, with other values at its top level."""
    return result(**asdict(cell)) | changes


def seeds(*accuracies, **more):
    """Results of a cell, an accuracy a seed from 1."""
    return [
        result(accuracy, seed=seed, **more)
        for seed, accuracy in enumerate(accuracies, start=1)
    ]
