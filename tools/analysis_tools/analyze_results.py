# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Look at what a model is sure of, rightly and wrongly: ``python
tools/analysis_tools/analyze_results.py CONFIG RESULTS --out-dir FOLDER``."""

from pathlib import Path

from mmclca import cli
from mmclca.cli.arguments import add_cfg_options, positive


def parse_args():
    parser = cli.Parser(
        description='Write pictures of the best images of a test (right, with '
        'the highest scores) and of the worst (wrong, with the highest '
        'scores), with their classes, and the same as JSON'
    )
    parser.add('config', 'path or name of a config')
    parser.add('result', 'the .pkl of tools/test.py --out')
    parser.add('--out-dir', 'folder to write to', type=Path, required=True)
    parser.add('--topk', 'pictures of each kind', 20, type=positive)
    parser.add(
        '-r --rescale-factor',
        'of the size at which images are drawn, 320 px high by default',
        1.0,
    )
    add_cfg_options(parser)
    args = parser.parse_args()
    if args.rescale_factor <= 0:
        parser.error('--rescale-factor must be above 0')
    return args


main = cli.command('analyze_results', parse_args)

if __name__ == '__main__':
    cli.run(main)
