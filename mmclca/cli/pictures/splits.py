# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Pictures of a model without images, or on a dataset split."""

from pathlib import Path

from .. import model_files
from ..arguments import positive
from ..packages import configs, datasets, torch, visualization
from .command import add_model, add_split, check_labels, load

# model outputs for t-SNE
STAGES = ('backbone', 'neck', 'pre_logits')
# defaults for sklearn.manifold.TSNE, which calls n_iter max_iter
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
        'layers to draw, from 0 (default: all)',
        nargs='+',
        type=int,
        metavar='N',
    )
    parser.add(
        '--rows',
        'size N of the N x N central patches to draw',
        6,
        type=positive,
        metavar='N',
    )


def draw_cross_patch(args):
    """Draw rows of the cross-patch matrices of a ResMLP as maps of their input
    patches, and the sparsity of the matrices in each layer.
    """
    backbone = load(args, args.files).backbone
    visualization.cross_patch.draw_cross_patch(
        backbone, args.out, args.layers, args.rows
    )
    return args.out


def add_confusions(parser):
    add_split(parser)
    parser.add('--pairs', 'class pairs to draw', 5, type=positive)
    parser.add('--examples', 'images per kind', 3, type=positive)
    parser.share('--batch-size')


def draw_confusions(args):
    """Draw the confusion matrix of the most confused classes. Below it, one
    row per pair: correct images of the first class, images misclassified as
    the second class, and images of the second class.
    """
    model, study = load(args, args.files), visualization.confusions
    dataset = datasets.batches.build_dataset(model._config, args.split)
    found = datasets.batches.batches(model, dataset, None, args.batch_size)
    predictions = study.predict(model, found, model._dataset_meta['classes'])
    study.draw_confusions(predictions, args.out, args.pairs, args.examples)
    return args.out


def add_tsne(parser):
    parser.add('config', 'path or name of a config, or checkpoint')
    parser.add('--checkpoint', 'weights, unless config is a checkpoint')
    work_dir = 'output folder (default: work_dirs/NAME_OF_CONFIG)'
    parser.add('--work-dir', work_dir, type=Path)
    parser.add('--test-cfg', 'config of the test data')
    stage = 'features to draw'
    parser.add('--vis-stage', stage, 'pre_logits', choices=STAGES)
    parser.add('--class-idx', 'labels of the classes', nargs='+', type=int)
    number = 'number of first classes without --class-idx'
    parser.add('--max-num-class', number, 20)
    parser.add('--max-num-samples', 'maximum images per class', 100)
    parser.share('--batch-size')
    group = parser.add_argument_group('t-SNE', 'see sklearn.manifold.TSNE')
    for name, value in TSNE.items():
        option = f'--{name.replace("_", "-")}'
        more = dict(type=type(value), choices=CHOICES.get(name))
        group.add_argument(option, default=value, **more)
    parser.flag('--legend', 'legend with class names')


def draw_tsne(args):
    """Draw the features of test images as points in a plane, with similar
    features close together (t-SNE).
    """
    torch.manual_seed(0)
    files = [args.config, *filter(None, [args.checkpoint])]
    config, checkpoint, _ = model_files.sort_files(files)
    model = model_files.load(args, config, checkpoint).model
    cfg = model._config
    if args.test_cfg:
        cfg = configs.read_config(args.test_cfg)
    dataset = datasets.batches.build_dataset(cfg)
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
    """Choose the indices of the images to draw."""
    number = len(dataset.CLASSES)
    wanted = args.class_idx or range(min(number, args.max_num_class))
    check_labels('--class-idx', wanted, number)
    labels = dataset.get_gt_labels()
    return datasets.batches.select_per_class(
        labels, args.max_num_samples, wanted
    )
