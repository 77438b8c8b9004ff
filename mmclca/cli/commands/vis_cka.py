# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw how much alike the layers of one model, or of two, are (CKA)."""

from pathlib import Path

from mmclca.utils.lazy import lazy

from .. import Parser, plain_errors
from ..arguments import add_model_arguments, add_split_arguments

loading = lazy('mmclca.apis.loading')
model_files = lazy('mmclca.cli.model_files')
batches = lazy('mmclca.datasets.batches')
cka = lazy('mmclca.visualization.cka')
figures = lazy('mmclca.visualization.figures')


def parse_args():
    parser = Parser(
        description='Draw the similarity (linear CKA) of what layers make of '
        'images: of each two layers of a model, or of the layers of one model '
        'and those of another'
    )
    add_split_arguments(parser)
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
        choices=('cls', 'mean', 'all'),
    )
    parser.add(
        '--num-images',
        'images at most, evenly spread over the split; what does not fill a '
        'batch is left out',
        256,
    )
    parser.add(
        '--batch-size',
        'images that are compared with each other at a time, 4 or more',
        32,
    )
    add_model_arguments(parser)
    args = parser.parse_args()
    if args.batch_size < 4 or args.num_images < args.batch_size:
        parser.error(
            '--batch-size must be 4 or more, and --num-images as many '
            'as --batch-size or more'
        )
    return args


def chosen(length, num_images, batch_size):
    """Positions of whole batches of images, whose classes are mixed."""
    number = min(length, num_images) // batch_size
    if not number:
        raise ValueError(
            f'the split has {length} images: give --batch-size {length} or '
            'less'
        )
    wanted = number * batch_size
    spread = [n * length // wanted for n in range(wanted)]
    return [n for start in range(number) for n in spread[start::number]]


def look(files, args):
    """Gram matrices of a model, the layers that reduce, and the images."""
    config, checkpoint, _ = model_files.sort_files(files)
    model = loading.load_classifier(
        config, checkpoint, args.cfg_options, args.device
    )
    dataset = batches.dataset_of(model._config, args.split)
    indices = chosen(len(dataset), args.num_images, args.batch_size)
    grams = cka.gram_matrices(
        model,
        batches.batches(model, dataset, indices, args.batch_size),
        args.feature,
    )
    infos = map(dataset.get_data_info, indices)
    # the folder of an image is its class in most data sets
    paths = [Path(info['img_path']).parts[-2:] for info in infos]
    return grams, model.backbone.reduce_at, paths


@plain_errors()
def main(args):
    figures.check_picture(args.out)
    grams, reduce_at, paths = look(args.files, args)
    others = grams, reduce_at, paths
    names = ('', '')
    if args.other:
        others = look(args.other, args)
        names = ('the first model', 'the other model')
    if others[2] != paths:
        raise ValueError(
            f'the {args.split} data of the two configs are not the same images'
        )
    both = (reduce_at, others[1])
    cka.draw_cka(cka.cka(grams, others[0]), args.out, names, both)
    print(args.out)
