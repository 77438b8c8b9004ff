# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Which classes are taken for which: ``python
tools/analysis_tools/confusion_matrix.py CONFIG CHECKPOINT|RESULTS``."""

from pathlib import Path

from mmclca import cli
from mmclca.cli.arguments import add_cfg_options, check_window, file_named


def parse_args():
    parser = cli.Parser(
        description='Count how often each class of the test set is taken for '
        'each; rows are true classes, columns predicted ones'
    )
    parser.add('config', 'path or name of a config')
    parser.add(
        'ckpt_or_result',
        'a checkpoint, which is tested, or the .pkl of tools/test.py --out',
    )
    parser.add(
        '--out',
        'write the matrix: .pkl (a tensor) or .json (lists)',
        type=file_named('.pkl', '.json'),
    )
    parser.flag('--show', 'show the picture in a window')
    parser.add('--show-path', 'picture to write', type=Path)
    parser.flag('--include-values', 'write the numbers into the picture')
    parser.add('--cmap', 'colours of matplotlib', 'viridis', metavar='NAME')
    add_cfg_options(parser)
    args = parser.parse_args()
    from matplotlib import colormaps

    if args.cmap not in colormaps:
        parser.error(
            f'--cmap {args.cmap}: one of {", ".join(sorted(colormaps))}'
        )
    if args.show:
        check_window(parser, 'give --show-path FILE')
    return args


main = cli.command('confusion_matrix', parse_args)

if __name__ == '__main__':
    cli.run(main)
