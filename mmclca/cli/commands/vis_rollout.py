# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/visualization/vis_rollout.py`` does."""

from mmclca.visualization import Heated, draw_heat_maps, rollout
from mmclca.visualization.figure_files import check_picture
from mmclca.visualization.inputs import drawn_leaves, view

from .. import plain_errors
from ..model_files import load, read_images, sort_files


@plain_errors()
def main(args):
    check_picture(args.out)
    config, checkpoint, paths = sort_files(args.files)
    images = [*read_images(paths), *drawn_leaves(args.leaves)]
    if not images:
        raise ValueError('nothing to draw: name images, or give --leaves 1')
    inferencer = load(config, checkpoint, args.cfg_options, args.device)
    model = inferencer.model
    views = [view(model, inferencer.pipeline, *image) for image in images]
    rows = [
        Heated(one.title, one.image, {'rollout': rollout(model, one.batch)[0]})
        for one in views
    ]
    draw_heat_maps(rows, args.out, 'share of the patch in the last CLS')
    print(args.out)
