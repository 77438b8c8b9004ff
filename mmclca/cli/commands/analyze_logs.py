# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/analysis_tools/analyze_logs.py`` does."""

import statistics
from itertools import groupby
from pathlib import Path

import matplotlib.pyplot as plt
from mmpretrain.utils import load_json_log

from mmclca.visualization.figure_files import check_picture, new_axes

from .. import plain_errors


def records_file(log):
    """The file of JSON lines that a path stands for."""
    log = Path(log)
    if log.is_dir():
        found = sorted(log.glob('**/vis_data/scalars.json'))
        log = found[-1] if found else log / 'vis_data' / 'scalars.json'
    elif log.suffix == '.log':
        log = log.parent / 'vis_data' / f'{log.stem}.json'
    if not log.is_file():
        raise FileNotFoundError(
            f'there is no {log}: it is written where the config has '
            "visualizer=dict(vis_backends=[dict(type='LocalVisBackend')])"
        )
    return log


def read(log):
    """Records of training and validation, as mmpretrain sorts them.

    Raises:
        ValueError: If lines are damaged, or nothing was logged in training.
    """
    path = records_file(log)
    try:
        records = load_json_log(path)
    except ValueError as error:
        raise ValueError(f'{path}: a line is no JSON ({error})') from error
    if not records['train']:
        raise ValueError(f'{path}: nothing was logged in training')
    return records


def iterations_an_epoch(train):
    """1 where a training does not count epochs.

    Steps go on from epoch to epoch; the last ones of an epoch are exact.
    """
    if 'epoch' not in train[0]:
        return 1
    return max(row['step'] / row['epoch'] for row in train)


def values_of(records, key):
    """Where and what was logged under a key: epochs (or iterations), values.

    Raises:
        ValueError: If there is no such key; names all there are.
    """
    train, val = records['train'], records['val']
    for phase, unit in ((val, 1), (train, iterations_an_epoch(train))):
        found = [row for row in phase if key in row]
        if found:
            steps = [row['step'] / unit for row in found]
            return steps, [row[key] for row in found]
    known = {name for row in (*train, *val) for name in row}
    known = sorted(known - {'step', 'epoch'})
    raise ValueError(f'nothing is logged as {key}; there are {known}')


def plot_curve(args):
    """Draw every key of every log; gives the figure."""
    logs = [read(log) for log in args.json_logs]
    names = iter(args.legend or names_of(args.json_logs, args.keys))
    figure, axes = new_axes(args.style, args.window_size, args.title)
    for records in logs:
        for key in args.keys:
            steps, values = values_of(records, key)
            marker = '.' if len(values) < 100 else None
            axes.plot(steps, values, label=next(names), marker=marker)
    epochs = all('epoch' in records['train'][0] for records in logs)
    axes.set_xlabel('epoch' if epochs else 'step')
    axes.legend()
    return figure


def names_of(logs, keys):
    """Names for the legend: those of the runs, where there are several."""
    runs = [records_file(log).parents[1].name for log in logs]
    alone = len(logs) == 1
    return [key if alone else f'{run} {key}' for run in runs for key in keys]


def epoch_times(train, include_outliers):
    """Mean seconds an iteration in each epoch, by epoch."""
    first = 0 if include_outliers else 1
    times = {}
    for epoch, rows in groupby(train, lambda row: row['epoch']):
        logged = [row['time'] for row in rows]
        times[epoch] = statistics.fmean(logged[first:] or logged)
    return times


def cal_train_time(log, include_outliers):
    """Yield lines on the speed of a training."""
    train = read(log)['train']
    yield f'-----Analyze train time of {log}-----'
    if 'epoch' in train[0]:
        times = epoch_times(train, include_outliers)
        for name, choose in (('slowest', max), ('fastest', min)):
            epoch = choose(times, key=times.get)
            yield f'{name} epoch {epoch}, average time is {times[epoch]:.4f}'
        spread = statistics.pstdev(times.values())
        yield f'time std over epochs is {spread:.4f}'
    mean = statistics.fmean(row['time'] for row in train)
    yield f'average iter time: {mean:.4f} s/iter'


def main(args):
    with plain_errors(args.task):
        if args.task == 'cal_train_time':
            for log in args.json_logs:
                print(*cal_train_time(log, args.include_outliers), sep='\n')
            return
        if args.out:
            check_picture(args.out)
        figure = plot_curve(args)
    if args.out:
        figure.savefig(args.out)
        print(args.out)
    else:
        plt.show()
