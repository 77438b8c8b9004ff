# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw the features of images as points of a plane (t-SNE)."""

from pathlib import Path

from mmclca import cli
from mmclca.cli.arguments import add_model_arguments
from mmclca.cli.choices import TSNE_STAGES


def parse_args():
    parser = cli.Parser(
        description='Draw the features of test images as points of a plane, '
        'near each other where they are alike (t-SNE)'
    )
    parser.add_argument(
        'config',
        help='path or name of a config, or a checkpoint that holds its own',
    )
    parser.add_argument(
        '--checkpoint', help='weights (without, they are random)'
    )
    parser.add_argument(
        '--work-dir',
        type=Path,
        help='folder for the picture (default: work_dirs/NAME_OF_CONFIG)',
    )
    parser.add_argument(
        '--test-cfg',
        help='path or name of another config, whose test data are drawn',
    )
    parser.add_argument(
        '--vis-stage',
        choices=TSNE_STAGES,
        default='pre_logits',
        help='whose output: pre_logits is what the last layer of the head '
        'reads (default: %(default)s)',
    )
    add_sample_arguments(parser)
    add_tsne_arguments(parser)
    add_model_arguments(parser)
    parser.add_argument(
        '--legend', action='store_true', help='name the classes in a legend'
    )
    parser.add_argument(
        '--show', action='store_true', help='show the picture in a window'
    )
    args = parser.parse_args()
    if args.show:
        check_window(parser)
    return args


def check_window(parser):
    from mmclca.visualization.figure_files import can_show

    if not can_show():
        parser.error('--show: no window to draw in')


def add_sample_arguments(parser):
    parser.add_argument(
        '--class-idx', nargs='+', type=int, help='labels of the classes'
    )
    parser.add_argument(
        '--max-num-class',
        type=int,
        default=20,
        help='without --class-idx, the first classes (default: %(default)s)',
    )
    parser.add_argument(
        '--max-num-samples',
        type=int,
        default=100,
        help='images of a class at most (default: %(default)s)',
    )
    parser.add_argument(
        '--batch-size', type=int, default=32, help='images at a time'
    )


def add_tsne_arguments(parser):
    group = parser.add_argument_group('t-SNE', 'see sklearn.manifold.TSNE')
    group.add_argument('--n-components', type=int, default=2, choices=(2, 3))
    group.add_argument('--perplexity', type=float, default=30.0)
    group.add_argument('--early-exaggeration', type=float, default=12.0)
    group.add_argument('--learning-rate', type=float, default=200.0)
    group.add_argument('--n-iter', type=int, default=1000)
    group.add_argument('--n-iter-without-progress', type=int, default=300)
    group.add_argument('--init', choices=('random', 'pca'), default='random')


def main():
    args = parse_args()
    from mmclca.cli.commands import vis_tsne

    vis_tsne.main(args)


if __name__ == '__main__':
    cli.run(main)
