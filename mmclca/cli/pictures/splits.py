# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Pictures of a model, alone or on the images of a split."""

from functools import partial
from pathlib import Path

from .. import model_files
from ..arguments import positive
from ..packages import apis, configs, datasets, torch, visualization
from .kind import add_model, add_split, check_labels, load, load_network

# of visualization.cka, and of models whose features are drawn
FEATURES = ('cls', 'mean', 'all')
# studies of layers: what the colours of a matrix, or some curves, are
MATRICES = dict(cka='CKA', maps='cosine of maps of attention')
CURVES = dict(attention='head', fourier='layer', probe='', reinit='', pca='')
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
    backbone = load(args).model.backbone
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
    inferencer = load(args)
    model = inferencer.model
    dataset = datasets.batches.dataset_of(model._config, args.split)
    every = range(len(dataset))
    found = datasets.batches.batches(model, dataset, every, args.batch_size)
    predictions = visualization.confusions.predict(
        model, found, inferencer.classes
    )
    visualization.confusions.draw_confusions(
        predictions, args.out, args.pairs, args.examples
    )
    return args.out


def add_cka(parser):
    add_split(parser)
    parser.add(
        '--kind',
        'cka, maps: how alike features, or maps of attention, of layers are; '
        'attention: how far and widely heads look; fourier: frequencies of '
        'features; probe: accuracy of a linear classifier by layer; reinit: '
        'of nearest images, with first or last layers anew; pca: energy of '
        'principal components of the final features',
        'cka',
        choices=(*MATRICES, *CURVES),
    )
    parser.add(
        '--other',
        'another model to compare with',
        nargs='+',
        metavar='[CONFIG] CHECKPOINT',
    )
    parser.add(
        '--feature',
        'compare the CLS tokens, the mean of the others, or all tokens in '
        'their order, which reducers change',
        'cls',
        choices=FEATURES,
    )
    parser.add(
        '--num-images',
        'images at most, evenly spread over the split; what does not fill a '
        'batch is left out',
        256,
        type=positive,
    )
    parser.add(
        '--batch-size',
        'images that are compared with each other at a time, 4 or more',
        32,
        type=positive,
    )


def draw_cka(args):
    """Draw what the layers of a model make of images: how alike they are, of
    each two layers (linear CKA) of one model or of two, or what --kind says;
    the numbers go into a .csv file beside the picture
    """
    study = visualization.layer_studies
    if args.other and args.kind in CURVES:
        raise ValueError(
            f'--kind {args.kind} is of one model: leave out --other, and '
            'draw it once more'
        )
    files = [args.files, *filter(None, [args.other])]
    opened = [open_split(args, one) for one in files]
    check_same(args, [paths for *_, paths in opened])
    if args.kind in CURVES:
        tables = curves_of(args, *opened[0][:2])
        study.draw_curves(tables, args.out, CURVES[args.kind])
    else:
        tables = {args.kind: similarity_of(args, opened)}
        names = ('the first model', 'the other model') if args.other else ()
        as_reducible = visualization.cka.as_reducible
        reduce_at = [as_reducible(x.backbone).reduce_at for x, *_ in opened]
        how = names or ('', ''), (reduce_at[0], reduce_at[-1])
        label = MATRICES[args.kind]
        visualization.cka.draw_cka(tables[args.kind], args.out, *how, label)
    study.write_numbers(tables, args.out.with_suffix('.csv'))
    return args.out


def similarity_of(args, opened):
    """Compare each layer of a model with each one of the last model."""
    (one, read, _), (other, read_again, _) = opened[0], opened[-1]
    if args.kind == 'maps':
        pairs = zip(read(), read_again(), strict=True)
        return visualization.layer_studies.maps(one, other, pairs)
    gram_matrices = visualization.cka.gram_matrices
    grams = [gram_matrices(x, read(), args.feature) for x, read, _ in opened]
    return visualization.cka.cka(grams[0], grams[-1])


def curves_of(args, model, read):
    """Measure what is drawn as curves."""
    study = visualization.layer_studies
    if args.kind != 'probe':
        return getattr(study, args.kind)(model, read)
    if args.feature == 'all':  # gigabytes
        raise ValueError('--kind probe takes --feature cls or mean')
    features, labels = study.layer_features(model, read(), args.feature)
    how = study.numbered(labels)
    found = [apis.probe.out_of_fold(x.float(), *how) for x in features]
    right = [one.accuracy.mean() for one in found]
    return dict(accuracy=torch.stack(right)[:, None])


def open_split(args, files):
    """Load a model; give what reads images anew, and their names."""
    model = load_network(args, files)
    dataset = datasets.batches.dataset_of(model._config, args.split)
    indices = chosen(len(dataset), args.num_images, args.batch_size)
    how = model, dataset, indices, args.batch_size
    return model, partial(datasets.batches.batches, *how), paths_of(*how[1:3])


def chosen(length, num_images, batch_size):
    """Choose positions of whole batches of images, whose classes are mixed."""
    number = min(length, num_images) // batch_size
    if not number:
        raise ValueError(
            f'the split has {length} images, of which --num-images are '
            f'{num_images}: give --batch-size {min(length, num_images)} or '
            'less'
        )
    wanted = number * batch_size
    spread = [n * length // wanted for n in range(wanted)]
    return [n for start in range(number) for n in spread[start::number]]


def add_agreement(parser):
    add_split(parser)
    parser.add(
        '--other',
        'another model to compare with, a teacher or any other; for several, '
        'once for each',
        nargs='+',
        action='append',
        metavar='[CONFIG] CHECKPOINT',
    )
    parser.share('--batch-size')


def draw_agreement(args):
    """Draw on what share of images each two models decide otherwise, a
    distilled one by CLS, by its distillation token and by both; beside it
    how alike these two tokens are in each layer
    """
    study, rows, cosines = visualization.agreement, {}, {}
    seen, named = [], []
    for n, files in enumerate((args.files, *(args.other or ())), start=1):
        model = load(args, files).model
        dataset = datasets.batches.dataset_of(model._config, args.split)
        every = range(len(dataset))
        seen.append(paths_of(dataset, every))
        named.append(model._dataset_meta['classes'])
        how = model, dataset, every, args.batch_size
        name = f'{n}. {Path(files[-1]).stem}'
        found = study.decisions(name, model, images_read(*how))
        rows.update(found)
        if len(found) > 1:
            cosines[name] = study.token_cosines(model, images_read(*how))
    check_same(args, seen)
    study.check_classes(named)
    study.draw_agreement(rows, cosines, args.out)
    return args.out


def images_read(*how):
    """Yield images in batches, which are not kept."""
    return (batch.images for batch in datasets.batches.batches(*how))


def check_same(args, seen):
    """Refuse models whose configs name other images."""
    if any(paths != seen[0] for paths in seen):
        raise ValueError(f'the {args.split} images of the configs differ')


def paths_of(dataset, indices):
    """Name images; the folder of one is its class in most data sets."""
    infos = map(dataset.get_data_info, indices)
    return [Path(info['img_path']).parts[-2:] for info in infos]


def add_tsne(parser):
    parser.add(
        'config',
        'path or name of a config, or a checkpoint that holds its own',
    )
    parser.add('--checkpoint', 'weights, where the config is no checkpoint')
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
        choices=STAGES,
    )
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
