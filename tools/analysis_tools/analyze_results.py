# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Look at what a model is sure of, rightly and wrongly: ``python
tools/analysis_tools/analyze_results.py CONFIG RESULTS --out-dir FOLDER``."""

from pathlib import Path

from mmclca import cli
from mmclca.cli.arguments import add_cfg_options


def parse_args():
    parser = cli.Parser(
        description='Write pictures of the best images of a test (right, with '
        'the highest scores) and of the worst (wrong, with the highest '
        'scores), with their classes, and the same as JSON'
    )
    parser.add_argument('config', help='path or name of a config')
    parser.add_argument('result', help='the .pkl of tools/test.py --out')
    parser.add_argument(
        '--out-dir', type=Path, required=True, help='folder to write to'
    )
    parser.add_argument(
        '--topk',
        type=int,
        default=20,
        help='pictures of each kind (default: %(default)s)',
    )
    parser.add_argument(
        '-r',
        '--rescale-factor',
        type=float,
        default=1.0,
        help='of the size at which images are drawn, 320 px high by default',
    )
    add_cfg_options(parser)
    args = parser.parse_args()
    if args.topk < 1 or args.rescale_factor <= 0:
        parser.error('--topk and --rescale-factor must be above 0')
    return args


def main():
    args = parse_args()
    from mmclca.cli.commands import analyze_results

    analyze_results.main(args)


if __name__ == '__main__':
    cli.run(main)
