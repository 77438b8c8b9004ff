# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/visualization/vis_cka.py`` does."""

from pathlib import Path

from mmclca.visualization.batches import batches, dataset_of
from mmclca.visualization.cka import cka, draw_cka, gram_matrices
from mmclca.visualization.figure_files import check_picture

from .. import plain_errors
from ..model_files import load, sort_files


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
    config, checkpoint, _ = sort_files(files)
    model = load(config, checkpoint, args.cfg_options, args.device).model
    dataset = dataset_of(model._config, args.split)
    indices = chosen(len(dataset), args.num_images, args.batch_size)
    grams = gram_matrices(
        model, batches(model, dataset, indices, args.batch_size), args.feature
    )
    infos = map(dataset.get_data_info, indices)
    # the folder of an image is its class in most data sets
    paths = [Path(info['img_path']).parts[-2:] for info in infos]
    return grams, model.backbone.reduce_at, paths


@plain_errors()
def main(args):
    check_picture(args.out)
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
    draw_cka(cka(grams, others[0]), args.out, names, both)
    print(args.out)
