# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/visualization/vis_pooling.py`` does."""

from mmclca.utils.known_names import not_one_of
from mmclca.visualization import draw_heat_maps
from mmclca.visualization.figure_files import check_picture
from mmclca.visualization.inputs import drawn_leaves, view
from mmclca.visualization.pooling import pooled

from .. import plain_errors
from ..model_files import load, read_images, sort_files


def label_of(text, names):
    """The label of a class, by its name or its number."""
    if text in names:
        return names.index(text)
    if text.isdecimal() and int(text) < len(names):
        return int(text)
    raise ValueError(
        f'--classes: {not_one_of(text, names)}, also by their labels, 0 to '
        f'{len(names) - 1}'
    )


@plain_errors()
def main(args):
    check_picture(args.out)
    config, checkpoint, paths = sort_files(args.files)
    images = [*read_images(paths), *drawn_leaves(args.leaves)]
    if not images:
        raise ValueError('nothing to draw: name images, or give --leaves 1')
    inferencer = load(config, checkpoint, args.cfg_options, args.device)
    model, names = inferencer.model, list(inferencer.classes)
    labels = [label_of(text, names) for text in args.classes or ()]
    views = [view(model, inferencer.pipeline, *image) for image in images]
    rows = [row for one in views for row in pooled(model, one, names, labels)]
    draw_heat_maps(rows, args.out, 'share of the patch in what is pooled')
    print(args.out)
