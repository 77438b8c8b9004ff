# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw the features of images as points of a plane (t-SNE)."""

import argparse
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import torch
from mmpretrain import get_model

from mmclca.apis.stored import is_checkpoint
from mmclca.utils.command_line import plain_errors, read_config
from mmclca.utils.extras import require
from mmclca.visualization.batches import (
    batches,
    dataset_of,
    first_of_each_class,
)
from mmclca.visualization.figure_files import can_show
from mmclca.visualization.model_files import add_model_arguments, load
from mmclca.visualization.tsne import STAGES, draw_points, image_features, tsne


def parse_args():
    parser = argparse.ArgumentParser(
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
        choices=STAGES,
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
    if args.show and not can_show():
        parser.error('--show: no window to draw in')
    return args


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


def load_model(args):
    """The model, with weights where there are any."""
    config, checkpoint = args.config, args.checkpoint
    if checkpoint is None and is_checkpoint(config):
        config, checkpoint = None, config
    if checkpoint:
        return load(config, checkpoint, args.cfg_options, args.device).model
    print('no --checkpoint: weights are random', file=sys.stderr)
    cfg = read_config(config, args.cfg_options)
    cfg.model.pop('teacher', None)  # its files are not asked for
    return get_model(cfg, pretrained=False, device=args.device)


def choose(dataset, args):
    """Positions of the images to draw."""
    number = len(dataset.CLASSES)
    wanted = args.class_idx or range(min(number, args.max_num_class))
    wrong = [label for label in wanted if not 0 <= label < number]
    if wrong:
        raise ValueError(
            f'--class-idx {" ".join(map(str, wrong))}: the data have the '
            f'labels 0 to {number - 1}'
        )
    labels = dataset.get_gt_labels()
    return first_of_each_class(labels, args.max_num_samples, wanted)


def draw(args):
    require('sklearn', extra='pictures')  # not only after the model ran
    torch.manual_seed(0)
    model = load_model(args)
    cfg = read_config(args.test_cfg) if args.test_cfg else model._config
    dataset = dataset_of(cfg)
    found = batches(model, dataset, choose(dataset, args), args.batch_size)
    features, labels = image_features(model, found, args.vis_stage)
    points = tsne(
        features,
        args.n_components,
        args.perplexity,
        args.early_exaggeration,
        args.learning_rate,
        args.n_iter,
        args.n_iter_without_progress,
        args.init,
    )
    folder = args.work_dir or Path('work_dirs', Path(args.config).stem)
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / f'tsne_{args.vis_stage}.png'
    draw_points(points, labels, dataset.CLASSES, out, args.legend)
    return out


def main():
    args = parse_args()
    with plain_errors('vis_tsne.py'):
        out = draw(args)
    print(out)
    if args.show:
        plt.figure().figimage(plt.imread(out), resize=True)
        plt.show()


if __name__ == '__main__':
    main()
