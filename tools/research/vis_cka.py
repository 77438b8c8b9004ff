# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw the similarity of each pair of layers (linear CKA) of one or two
models, or another study per layer: attention distance, spectrum
(fourier), accuracy (probe), accuracy with reinitialized layers (reinit),
principal components (pca). A .csv file next to the picture has the
numbers.

``python tools/research/vis_cka.py CONFIG CHECKPOINT --out cka.png``
"""

from functools import partial
from pathlib import Path

import layer_figures
import layer_studies
import torch
from cka import cka, gram_matrices

from mmclca import cli
from mmclca.apis.probe import LabeledFeatures, out_of_fold
from mmclca.cli.arguments import positive
from mmclca.cli.picture_inputs import add_split, load_model
from mmclca.datasets.batches import batches, build_dataset
from mmclca.errors import Error
from mmclca.models import as_reducible

FEATURES = ('cls', 'mean', 'all')  # see cka.py
# label of the color bar, or legend title of the curves, by kind
MATRICES = dict(cka='CKA', maps='cosine of maps of attention')
CURVES = dict(attention='head', fourier='layer', probe='', reinit='', pca='')


def add_arguments(parser):
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


def draw(args):
    if args.other and args.kind in CURVES:
        raise Error(f'--kind {args.kind} shows one model: omit --other')
    opened = [
        open_split(
            args, load_model(args, files, True), partial(choose_images, args)
        )
        for files in filter(None, (args.files, args.other))
    ]
    check_same_images(args, [paths for *_, paths in opened])
    if args.kind in CURVES:
        model, read, _ = opened[0]
        tables = compute_curves(args, model, read)
        layer_figures.draw_curves(tables, args.out, CURVES[args.kind])
    else:
        tables = {args.kind: compute_similarity(args, opened)}
        names = ('first model', 'second model') if args.other else ('', '')
        backbones = [as_reducible(x.backbone) for x, *_ in opened]
        reduce_at = backbones[0].reduce_at, backbones[-1].reduce_at
        layer_figures.draw_cka(
            tables[args.kind], args.out, names, reduce_at, MATRICES[args.kind]
        )
    layer_figures.write_numbers(tables, args.out.with_suffix('.csv'))
    return args.out


def compute_similarity(args, opened):
    """Compare each layer in the first model with each in the last model."""
    (first, read, _), (other, read_again, _) = opened[0], opened[-1]
    if args.kind == 'maps':
        pairs = zip(read(), read_again(), strict=True)
        return layer_studies.maps(first, other, pairs)
    grams = [gram_matrices(x, read(), args.feature) for x, read, _ in opened]
    return cka(grams[0], grams[-1])


def compute_curves(args, model, read):
    """Compute the values of the curves."""
    if args.kind != 'probe':
        return getattr(layer_studies, args.kind)(model, read)
    if args.feature == 'all':  # gigabytes
        raise Error('--kind probe needs --feature cls or mean')
    features, labels = layer_studies.layer_features(
        model, read(), args.feature
    )
    labels, classes = layer_studies.renumbered(labels)
    estimates = [
        out_of_fold(LabeledFeatures(x.float(), labels, classes))
        for x in features
    ]
    right = [estimate.accuracy.mean() for estimate in estimates]
    return dict(accuracy=torch.stack(right)[:, None])


def choose_images(args, length):
    """Choose image indices for full batches with mixed classes."""
    available = min(length, args.num_images)
    number = available // args.batch_size
    if not number:
        raise Error(
            f'--batch-size {args.batch_size} exceeds the {available} images: '
            f'use --batch-size {available} or less'
        )
    wanted = number * args.batch_size
    spread = [n * length // wanted for n in range(wanted)]
    return [n for start in range(number) for n in spread[start::number]]


def open_split(args, model, choose=range):
    """Return the model, a function yielding batches, and image names."""
    dataset = build_dataset(model._config, args.split)
    indices = choose(len(dataset))
    infos = map(dataset.get_data_info, indices)
    # the folder is the class in most datasets
    names = [Path(info['img_path']).parts[-2:] for info in infos]
    read = partial(batches, model, dataset, indices, args.batch_size)
    return model, read, names


def check_same_images(args, seen):
    """Raise if the configs have different images."""
    if any(names != seen[0] for names in seen):
        raise Error(f'the configs have different {args.split} images')


def main():
    parser = cli.Parser(__doc__)
    add_arguments(parser)
    args = parser.parse_args()
    print(f'Saved      {draw(args)}')


if __name__ == '__main__':
    cli.run(main)
