# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What a training has logged: ``python tools/analysis_tools/analyze_logs.py
plot_curve|cal_train_time LOGS``."""

from pathlib import Path

from mmclca import cli
from mmclca.cli.arguments import add_figure_arguments, check_window


def parse_args():
    parser = cli.Parser(
        description='Draw what trainings have logged, or tell their speed'
    )
    tasks = parser.add_subparsers(dest='task', required=True)
    curve = tasks.add_parser('plot_curve', help='draw losses and metrics')
    add_logs(curve)
    curve.add(
        '--keys',
        'what to draw, such as loss, lr, accuracy/top1 (default: loss)',
        ['loss'],
        nargs='+',
    )
    curve.add(
        '--legend', 'names of the curves, for each log in turn', nargs='+'
    )
    curve.add('--out', 'picture to write', type=Path)
    add_figure_arguments(curve)
    time = tasks.add_parser('cal_train_time', help='seconds an iteration')
    add_logs(time)
    time.flag(
        '--include-outliers',
        'count the first value of each epoch, too, which is slow',
    )
    args = parser.parse_args()
    if args.task == 'plot_curve':
        check_legend(curve, args)
    return args


def add_logs(parser):
    parser.add(
        'json_logs',
        'vis_data/scalars.json of a run, the .log beside vis_data, or the '
        'folder of the run (its latest training)',
        nargs='+',
        metavar='LOG',
    )


def check_legend(parser, args):
    curves = len(args.json_logs) * len(args.keys)
    if args.legend and len(args.legend) != curves:
        parser.error(f'--legend: {len(args.legend)} names, {curves} curves')
    if not args.out:
        check_window(parser, 'give --out FILE')


main = cli.command('analyze_logs', parse_args)

if __name__ == '__main__':
    cli.run(main)
