# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw the features of test images as points in a plane, with similar
features close together (t-SNE).
"""

from pathlib import Path

from .. import model_files
from ..listing import Listing
from ..picture_inputs import check_label_range

LISTING = Listing('analyze', 't-SNE of image features', 'pictures')
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


def add_arguments(parser):
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
        options = dict(type=type(value), choices=CHOICES.get(name))
        group.add_argument(option, default=value, **options)
    parser.flag('--legend', 'legend with class names')
    parser.share('--device', '--cfg-options')


def draw(args):
    import torch

    from mmclca.configs import read_config
    from mmclca.datasets.batches import batches, build_dataset
    from mmclca.visualization import tsne

    torch.manual_seed(0)
    files = [args.config, *filter(None, [args.checkpoint])]
    config, checkpoint, _ = model_files.sort_files(files)
    model = model_files.load_inferencer(args, config, checkpoint).model
    cfg = model._config
    if args.test_cfg:
        cfg = read_config(args.test_cfg)
    dataset = build_dataset(cfg)
    images = images_of_classes(dataset, args)
    read = batches(model, dataset, images, args.batch_size)
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
    from mmclca.datasets.batches import select_per_class

    number = len(dataset.CLASSES)
    wanted = args.class_idx or range(min(number, args.max_num_class))
    check_label_range('class_idx', wanted, number)
    labels = dataset.get_gt_labels()
    return select_per_class(labels, args.max_num_samples, wanted)
