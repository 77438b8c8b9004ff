# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Results of probe arms and of trained arms that nobody measured."""

from dataclasses import asdict

from mmclca.benchmark.few_photographs.arms import ProbeArm

BACKBONE = 'deit-tiny-p16'


def probe_result(arm: ProbeArm, accuracy, gmacs, dataset='leaf40_white'):
    """A result of a probe arm with an accuracy a draw."""
    return dict(
        dataset=dataset,
        arm=asdict(arm),
        network=arm.network,
        train_images=120,
        accuracy=list(accuracy),
        macro_recall=[value - 1 for value in accuracy],
        strength=[1.0] * len(accuracy),
        fit_seconds=[0.5] * len(accuracy),
        gmacs=gmacs,
        params=1,
        machine=dict(
            CPU='a CPU', versions='a version', date='2026-01-01', command='c'
        ),
    )


def trained_results(arm, clca, accuracy, gmacs, keep_rate, **more):
    """Results of a sweep, of draw 0 on."""
    cell = dict(
        dataset='leaf40',
        backbone=BACKBONE,
        method='EViT',
        keep_rate=keep_rate,
        size=224,
        clca=clca,
        seed=1,
    )
    return [
        dict(
            cell=dict(cell, variant=f'{arm}-d{draw}', **more),
            accuracy=value,
            gmacs=gmacs,
            seconds=500.0,
            cpu_seconds=100.0 + draw,
            metrics={'single-label/recall': value - 2},
        )
        for draw, value in enumerate(accuracy)
    ]
