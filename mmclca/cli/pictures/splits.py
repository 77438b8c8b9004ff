# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Pictures of a model, alone or on the images of a split."""

from pathlib import Path

from .. import model_files
from ..arguments import positive
from ..packages import configs, datasets, torch, visualization
from .kind import add_model, add_split, check_labels, load

# of models whose features are drawn
STAGES = ('backbone', 'neck', 'pre_logits')
# options of sklearn.manifold.TSNE, n_iter being max_iter
TSNE = dict(
    n_components=2,
    perplexity=30.0,
    early_exaggeration=12.0,
    learning_rate=200.0,
    n_iter=1000,
    n_iter_without_progress=300,
    init='random',
)
CHOICES = dict(n_components=(2, 3), init=('random', 'pca'))


def add_cross_patch(parser):
    add_model(parser)
    parser.add(
        '--layers',
        'layers, from 0, whose rows are drawn (default: all)',
        nargs='+',
        type=int,
        metavar='N',
    )
    parser.add(
        '--rows',
        'draw the rows of N x N patches around the centre',
        6,
        type=positive,
        metavar='N',
    )


def draw_cross_patch(args):
    """Draw rows of the matrices across patches of a ResMLP as maps of the
    patches that are read, and how sparse its matrices are in each layer
    """
    backbone = load(args, args.files).backbone
    visualization.cross_patch.draw_cross_patch(
        backbone, args.out, args.layers, args.rows
    )
    return args.out


def add_confusions(parser):
    add_split(parser)
    parser.add('--pairs', 'pairs of classes to draw', 5, type=positive)
    parser.add('--examples', 'images of a kind to draw', 3, type=positive)
    parser.share('--batch-size')


def draw_confusions(args):
    """Draw the confusion matrix of the classes that are most often taken
    for each other; below it a row a pair: images of the one class that are
    right, those that are taken for the other class, and images of that
    """
    model, study = load(args, args.files), visualization.confusions
    dataset = datasets.batches.dataset_of(model._config, args.split)
    found = datasets.batches.batches(model, dataset, None, args.batch_size)
    predictions = study.predict(model, found, model._dataset_meta['classes'])
    study.draw_confusions(predictions, args.out, args.pairs, args.examples)
    return args.out


def add_tsne(parser):
    parser.add('config', 'path or name of a config, or a checkpoint')
    parser.add('--checkpoint', 'weights, where the config is no checkpoint')
    work_dir = 'folder for the picture (default: work_dirs/NAME_OF_CONFIG)'
    parser.add('--work-dir', work_dir, type=Path)
    parser.add('--test-cfg', 'config of the test data')
    stage = 'features to draw'
    parser.add('--vis-stage', stage, 'pre_logits', choices=STAGES)
    parser.add('--class-idx', 'labels of the classes', nargs='+', type=int)
    parser.add('--max-num-class', 'without --class-idx, the first classes', 20)
    parser.add('--max-num-samples', 'images of a class at most', 100)
    parser.add('--batch-size', 'images at a time', 32)
    group = parser.add_argument_group('t-SNE', 'see sklearn.manifold.TSNE')
    for name, value in TSNE.items():
        option = f'--{name.replace("_", "-")}'
        more = dict(type=type(value), choices=CHOICES.get(name))
        group.add_argument(option, default=value, **more)
    parser.flag('--legend', 'name the classes in a legend')


def draw_tsne(args):
    """Draw the features of test images as points of a plane, near each
    other where they are alike (t-SNE)
    """
    torch.manual_seed(0)
    files = [args.config, *filter(None, [args.checkpoint])]
    config, checkpoint, _ = model_files.sort_files(files)
    model = model_files.load(args, config, checkpoint).model
    cfg = model._config
    if args.test_cfg:
        cfg = configs.read_config(args.test_cfg)
    dataset = datasets.batches.dataset_of(cfg)
    images = images_of_classes(dataset, args)
    read = datasets.batches.batches(model, dataset, images, args.batch_size)
    tsne = visualization.tsne
    features, labels = tsne.image_features(model, read, args.vis_stage)
    options = {name: vars(args)[name] for name in TSNE}
    points = tsne.tsne(features, max_iter=options.pop('n_iter'), **options)
    folder = args.work_dir or Path('work_dirs', Path(args.config).stem)
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / f'tsne_{args.vis_stage}.png'
    tsne.draw_points(points, labels, dataset.CLASSES, out, args.legend)
    return out


def images_of_classes(dataset, args):
    """Choose positions of the images to draw."""
    number = len(dataset.CLASSES)
    wanted = args.class_idx or range(min(number, args.max_num_class))
    check_labels('--class-idx', wanted, number)
    labels = dataset.get_gt_labels()
    return datasets.batches.first_of_each_class(
        labels, args.max_num_samples, wanted
    )
