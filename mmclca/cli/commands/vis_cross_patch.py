# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/visualization/vis_cross_patch.py`` does."""

from mmclca.visualization.cross_patch import draw_cross_patch
from mmclca.visualization.figure_files import check_picture

from .. import plain_errors
from ..model_files import load, sort_files


@plain_errors()
def main(args):
    check_picture(args.out)
    config, checkpoint, images = sort_files(args.files)
    if images:
        raise ValueError(f'{images[0]}: no images are read, leave them out')
    model = load(config, checkpoint, args.cfg_options, args.device).model
    draw_cross_patch(model.backbone, args.out, args.layers, args.rows)
    print(args.out)
