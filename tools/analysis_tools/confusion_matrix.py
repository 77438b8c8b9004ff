# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Which classes are taken for which: ``python
tools/analysis_tools/confusion_matrix.py CONFIG CHECKPOINT|RESULTS``."""

from pathlib import Path

from mmclca import cli
from mmclca.cli.arguments import add_cfg_options


def parse_args():
    parser = cli.Parser(
        description='Count how often each class of the test set is taken for '
        'each; rows are true classes, columns predicted ones'
    )
    parser.add_argument('config', help='path or name of a config')
    parser.add_argument(
        'ckpt_or_result',
        help='a checkpoint, which is tested, or the .pkl of tools/test.py '
        '--out',
    )
    parser.add_argument(
        '--out',
        type=Path,
        help='write the matrix: .pkl (a tensor) or .json (lists)',
    )
    parser.add_argument(
        '--show', action='store_true', help='show the picture in a window'
    )
    parser.add_argument('--show-path', type=Path, help='picture to write')
    parser.add_argument(
        '--include-values',
        action='store_true',
        help='write the numbers into the picture',
    )
    parser.add_argument(
        '--cmap',
        metavar='NAME',
        default='viridis',
        help='colours of matplotlib (default: %(default)s)',
    )
    add_cfg_options(parser)
    args = parser.parse_args()
    if args.out and args.out.suffix not in ('.pkl', '.json'):
        parser.error(f'--out {args.out}: the name must end in .pkl or .json')
    check_drawing(parser, args)
    return args


def check_drawing(parser, args):
    """Refuse colours that are not there, and a window where there is none."""
    from matplotlib import colormaps

    from mmclca.visualization.figure_files import can_show

    if args.cmap not in colormaps:
        parser.error(
            f'--cmap {args.cmap}: one of {", ".join(sorted(colormaps))}'
        )
    if args.show and not can_show():
        parser.error('no window to draw in: give --show-path FILE')


def main():
    args = parse_args()
    from mmclca.cli.commands import confusion_matrix

    confusion_matrix.main(args)


if __name__ == '__main__':
    cli.run(main)
