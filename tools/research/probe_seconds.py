# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Measure seconds and memory of the linear probe of ``fit`` on its features.

Features are random, with two overlapping subsets as in ``fit`` and DeiT-Tiny.
Each number of photos runs in its own process.

``python tools/research/probe_seconds.py 120 1200 5000 --classes 40``
"""

import time
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context

import torch

from mmclca import cli
from mmclca.apis.probe import LabeledFeatures, fit_linear, out_of_fold
from mmclca.apis.probe import learning_curve as draw_curve
from mmclca.benchmark.peak_memory import get_peak_memory
from mmclca.cli.arguments import positive

WIDTH, COLUMNS, LATE = 6912, 5760, 768
TITLES = 'photos', 'views', 'folds', 'curve', 'final', 'peak MB'


def main():
    """Print one row per number of photos."""
    parser = cli.Parser(__doc__)
    parser.add('photos', 'numbers of photos', nargs='+', type=positive)
    parser.add('--classes', 'number of classes', 40, type=positive)
    parser.add('--views', 'views per photo', 1, type=positive)
    parser.add('--threads', 'PyTorch threads', 1, type=positive)
    args = parser.parse_args()
    print(''.join(f'{title:>9}' for title in TITLES))
    for number in args.photos:
        # a new process, for its own peak of memory
        with ProcessPoolExecutor(1, get_context('spawn')) as executor:
            row = executor.submit(
                measure, number, args.views, args.classes, args.threads
            )
            print(''.join(f'{x:9.4g}' for x in row.result()), flush=True)


def measure(number, views, classes, threads):
    """Return a row of the table, a number per title."""
    torch.set_num_threads(threads)
    data = draw_features(number, views, classes)
    times = [time.perf_counter()]
    cross_validated = out_of_fold(data)
    times.append(time.perf_counter())
    draw_curve(cross_validated)
    times.append(time.perf_counter())
    fit_linear(data, setting=cross_validated.setting)
    times.append(time.perf_counter())
    seconds = [after - before for before, after in pairwise(times)]
    return [number, views, *seconds, get_peak_memory()]


def draw_features(number, views, classes):
    """Noisy class means, with the feature subsets of DeiT-Tiny in ``fit``."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(number) % classes
    means = torch.randn(classes, WIDTH, generator=generator) / 8
    features = torch.randn(number, views, WIDTH, generator=generator)
    features += means[labels][:, None]
    early, late = torch.arange(COLUMNS), torch.arange(WIDTH)[-LATE:]
    return LabeledFeatures(
        features, labels, classes, feature_subsets=[early, late]
    )


if __name__ == '__main__':
    cli.run(main)
