# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Pictures comparing layers and models on a dataset split."""

from functools import partial
from pathlib import Path

from mmclca.errors import Error

from ..arguments import positive
from ..packages import apis, datasets, models, torch, visualization
from .command import add_split, load

FEATURES = ('cls', 'mean', 'all')  # see visualization.cka
# label of the color bar, or legend title of the curves, by kind
MATRICES = dict(cka='CKA', maps='cosine of maps of attention')
CURVES = dict(attention='head', fourier='layer', probe='', reinit='', pca='')


def add_cka(parser):
    add_split(parser)
    parser.add(
        '--kind',
        'similarity of features (cka) or attention (maps), or curves per '
        'layer',
        'cka',
        choices=(*MATRICES, *CURVES),
    )
    parser.add(
        '--other', 'second model', nargs='+', metavar='[CONFIG] CHECKPOINT'
    )
    parser.add(
        '--feature',
        'CLS token, mean of patch tokens, or all tokens',
        'cls',
        choices=FEATURES,
    )
    number = 'maximum number of images'
    parser.add('--num-images', number, 256, type=positive)
    parser.share('--batch-size')


def draw_cka(args):
    """Draw the similarity of each pair of layers (linear CKA) of one or two
    models, or another study per layer: attention distance, spectrum
    (fourier), accuracy (probe), accuracy with reinitialized layers (reinit),
    principal components (pca). A .csv file next to the picture has the
    numbers.
    """
    figures = visualization.layer_figures
    if args.other and args.kind in CURVES:
        raise Error(f'--kind {args.kind} shows one model: omit --other')
    opened = [
        open_split(args, load(args, files, True), partial(choose_images, args))
        for files in filter(None, (args.files, args.other))
    ]
    check_same_images(args, [paths for *_, paths in opened])
    if args.kind in CURVES:
        tables = compute_curves(args, *opened[0][:2])
        figures.draw_curves(tables, args.out, CURVES[args.kind])
    else:
        tables = {args.kind: compute_similarity(args, opened)}
        names = ('first model', 'second model') if args.other else ()
        backbones = [models.as_reducible(x.backbone) for x, *_ in opened]
        reduce_at = backbones[0].reduce_at, backbones[-1].reduce_at
        how = names or ('', ''), reduce_at, MATRICES[args.kind]
        figures.draw_cka(tables[args.kind], args.out, *how)
    figures.write_numbers(tables, args.out.with_suffix('.csv'))
    return args.out


def compute_similarity(args, opened):
    """Compare each layer in the first model with each in the last model."""
    (one, read, _), (other, read_again, _) = opened[0], opened[-1]
    if args.kind == 'maps':
        pairs = zip(read(), read_again(), strict=True)
        return visualization.layer_studies.maps(one, other, pairs)
    gram_matrices = visualization.cka.gram_matrices
    grams = [gram_matrices(x, read(), args.feature) for x, read, _ in opened]
    return visualization.cka.cka(grams[0], grams[-1])


def compute_curves(args, model, read):
    """Compute the values of the curves."""
    study = visualization.layer_studies
    if args.kind != 'probe':
        return getattr(study, args.kind)(model, read)
    if args.feature == 'all':  # gigabytes
        raise Error('--kind probe needs --feature cls or mean')
    features, labels = study.layer_features(model, read(), args.feature)
    how = study.renumbered(labels)
    found = [apis.probe.out_of_fold(x.float(), *how) for x in features]
    right = [one.accuracy.mean() for one in found]
    return dict(accuracy=torch.stack(right)[:, None])


def choose_images(args, length):
    """Choose image indices for full batches with mixed classes."""
    most = min(length, args.num_images)
    number = most // args.batch_size
    if not number:
        raise Error(
            f'--batch-size {args.batch_size} exceeds the {most} images: use '
            f'--batch-size {most} or less'
        )
    wanted = number * args.batch_size
    spread = [n * length // wanted for n in range(wanted)]
    return [n for start in range(number) for n in spread[start::number]]


def open_split(args, model, choose=range):
    """Return the model, a function yielding batches, and image names."""
    dataset = datasets.batches.build_dataset(model._config, args.split)
    indices = choose(len(dataset))
    infos = map(dataset.get_data_info, indices)
    # the folder is the class in most datasets
    names = [Path(info['img_path']).parts[-2:] for info in infos]
    how = model, dataset, indices, args.batch_size
    return model, partial(datasets.batches.batches, *how), names


def check_same_images(args, seen):
    """Raise if the configs have different images."""
    if any(names != seen[0] for names in seen):
        raise Error(f'the configs have different {args.split} images')


def add_agreement(parser):
    add_split(parser)
    parser.add(
        '--other',
        'further model, repeatable',
        nargs='+',
        action='append',
        metavar='[CONFIG] CHECKPOINT',
    )
    parser.share('--batch-size')


def draw_agreement(args):
    """Draw the pairwise disagreement between models; for a distilled model
    by CLS token, distillation token and both. A second panel shows the
    similarity of these two tokens in each layer.
    """
    study, rows, cosines = models.distillation.agreement, {}, {}
    seen, classes = [], []
    for n, files in enumerate((args.files, *(args.other or ())), start=1):
        model, read, names = open_split(args, load(args, files))
        seen.append(names)
        classes.append(model._dataset_meta['classes'])
        name = f'{n}. {Path(files[-1]).stem}'
        found = study.decisions(name, model, image_batches(read))
        rows.update(found)
        if len(found) > 1:
            cosines[name] = study.token_cosines(model, image_batches(read))
    check_same_images(args, seen)
    visualization.layer_figures.check_classes(classes)
    visualization.layer_figures.draw_agreement(rows, cosines, args.out)
    return args.out


def image_batches(read):
    """Yield the image tensor of each batch."""
    return (batch.images for batch in read())
