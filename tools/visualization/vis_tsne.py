# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw the features of images as points of a plane (t-SNE)."""

from pathlib import Path

from mmclca import cli
from mmclca.cli.arguments import add_model_arguments, check_window
from mmclca.cli.choices import TSNE_STAGES


def parse_args():
    parser = cli.Parser(
        description='Draw the features of test images as points of a plane, '
        'near each other where they are alike (t-SNE)'
    )
    parser.add(
        'config',
        'path or name of a config, or a checkpoint that holds its own',
    )
    parser.add('--checkpoint', 'weights (without, they are random)')
    parser.add(
        '--work-dir',
        'folder for the picture (default: work_dirs/NAME_OF_CONFIG)',
        type=Path,
    )
    parser.add(
        '--test-cfg',
        'path or name of another config, whose test data are drawn',
    )
    parser.add(
        '--vis-stage',
        'whose output: pre_logits is what the last layer of the head reads',
        'pre_logits',
        choices=TSNE_STAGES,
    )
    add_sample_arguments(parser)
    add_tsne_arguments(parser)
    add_model_arguments(parser)
    parser.flag('--legend', 'name the classes in a legend')
    parser.flag('--show', 'show the picture in a window')
    args = parser.parse_args()
    if args.show:
        check_window(parser, 'leave out --show')
    return args


def add_sample_arguments(parser):
    parser.add('--class-idx', 'labels of the classes', nargs='+', type=int)
    parser.add('--max-num-class', 'without --class-idx, the first classes', 20)
    parser.add('--max-num-samples', 'images of a class at most', 100)
    parser.add('--batch-size', 'images at a time', 32)


def add_tsne_arguments(parser):
    group = parser.add_argument_group('t-SNE', 'see sklearn.manifold.TSNE')
    group.add_argument('--n-components', type=int, default=2, choices=(2, 3))
    group.add_argument('--perplexity', type=float, default=30.0)
    group.add_argument('--early-exaggeration', type=float, default=12.0)
    group.add_argument('--learning-rate', type=float, default=200.0)
    group.add_argument('--n-iter', type=int, default=1000)
    group.add_argument('--n-iter-without-progress', type=int, default=300)
    group.add_argument('--init', choices=('random', 'pca'), default='random')


main = cli.command('vis_tsne', parse_args)

if __name__ == '__main__':
    cli.run(main)
