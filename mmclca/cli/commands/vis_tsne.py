# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw the features of images as points of a plane (t-SNE)."""

import sys
from pathlib import Path

from mmclca.checkpoints.fitted import is_checkpoint
from mmclca.utils.lazy import lazy

from .. import Parser, plain_errors
from ..arguments import add_model_arguments, check_window

plt = lazy('matplotlib.pyplot')
loading = lazy('mmclca.apis.loading')
configs = lazy('mmclca.configs')
batches = lazy('mmclca.datasets.batches')
tsne = lazy('mmclca.visualization.tsne')
torch = lazy('torch')


def parse_args():
    parser = Parser(
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
        choices=('backbone', 'neck', 'pre_logits'),
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


def load_model(args):
    """The model, with weights where there are any."""
    if args.checkpoint or is_checkpoint(args.config):
        return loading.load_classifier(
            args.config, args.checkpoint, args.cfg_options, args.device
        )
    print('no --checkpoint: weights are random', file=sys.stderr)
    cfg = configs.read_config(args.config, args.cfg_options)
    return loading.build_classifier(cfg).to(args.device or 'cpu')


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
    return batches.first_of_each_class(labels, args.max_num_samples, wanted)


def draw(args):
    torch.manual_seed(0)
    model = load_model(args)
    cfg = (
        configs.read_config(args.test_cfg) if args.test_cfg else model._config
    )
    dataset = batches.dataset_of(cfg)
    found = batches.batches(
        model, dataset, choose(dataset, args), args.batch_size
    )
    features, labels = tsne.image_features(model, found, args.vis_stage)
    points = tsne.tsne(
        features,
        n_components=args.n_components,
        perplexity=args.perplexity,
        early_exaggeration=args.early_exaggeration,
        learning_rate=args.learning_rate,
        max_iter=args.n_iter,
        n_iter_without_progress=args.n_iter_without_progress,
        init=args.init,
    )
    folder = args.work_dir or Path('work_dirs', Path(args.config).stem)
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / f'tsne_{args.vis_stage}.png'
    tsne.draw_points(points, labels, dataset.CLASSES, out, args.legend)
    return out


def main(args):
    with plain_errors():
        out = draw(args)
    print(out)
    if args.show:
        plt.figure().figimage(plt.imread(out), resize=True)
        plt.show()
