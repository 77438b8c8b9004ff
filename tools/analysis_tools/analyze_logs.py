# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What a training has logged: ``python tools/analysis_tools/analyze_logs.py
plot_curve|cal_train_time LOGS``."""

from pathlib import Path

from mmclca import cli
from mmclca.cli.arguments import add_figure_arguments


def parse_args():
    parser = cli.Parser(
        description='Draw what trainings have logged, or tell their speed'
    )
    tasks = parser.add_subparsers(dest='task', required=True)
    curve = tasks.add_parser('plot_curve', help='draw losses and metrics')
    add_logs(curve)
    curve.add_argument(
        '--keys',
        nargs='+',
        default=['loss'],
        help='what to draw, such as loss, lr, accuracy/top1 (default: loss)',
    )
    curve.add_argument(
        '--legend', nargs='+', help='names of the curves, for each log in turn'
    )
    curve.add_argument('--out', type=Path, help='picture to write')
    add_figure_arguments(curve)
    time = tasks.add_parser('cal_train_time', help='seconds an iteration')
    add_logs(time)
    time.add_argument(
        '--include-outliers',
        action='store_true',
        help='count the first value of each epoch, too, which is slow',
    )
    args = parser.parse_args()
    if args.task == 'plot_curve':
        check_legend(curve, args)
    return args


def add_logs(parser):
    parser.add_argument(
        'json_logs',
        nargs='+',
        metavar='LOG',
        help='vis_data/scalars.json of a run, the .log beside vis_data, or '
        'the folder of the run (its latest training)',
    )


def check_legend(parser, args):
    curves = len(args.json_logs) * len(args.keys)
    if args.legend and len(args.legend) != curves:
        parser.error(f'--legend: {len(args.legend)} names, {curves} curves')
    if not args.out:
        check_window(parser)


def check_window(parser):
    from mmclca.visualization.figure_files import can_show

    if not can_show():
        parser.error('no window to draw in: give --out FILE')


def main():
    args = parse_args()
    from mmclca.cli.commands import analyze_logs

    analyze_logs.main(args)


if __name__ == '__main__':
    cli.run(main)
