# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw the attention rollout of images: what of them reaches the last CLS."""

import argparse
from pathlib import Path

from mmclca.utils.command_line import plain_errors
from mmclca.visualization import Heated, draw_heat_maps, rollout
from mmclca.visualization.figure_files import check_picture
from mmclca.visualization.inputs import drawn_leaves, view
from mmclca.visualization.model_files import (
    add_model_arguments,
    load,
    read_images,
    sort_files,
)


def parse_args():
    parser = argparse.ArgumentParser(
        description='Draw a row an image: the image, and its patches as '
        'bright as they count for the last CLS, by attention rollout through '
        'what is kept, fused, merged and cached'
    )
    parser.add_argument(
        'files',
        nargs='+',
        metavar='[CONFIG] CHECKPOINT IMAGE',
        help='a config (path or name; without, the one in the checkpoint), '
        'weights and images, in any order',
    )
    parser.add_argument(
        '--leaves',
        type=int,
        default=0,
        metavar='N',
        help='draw N synthetic leaves besides, each of another cultivar',
    )
    parser.add_argument(
        '--out', type=Path, required=True, help='picture to write'
    )
    add_model_arguments(parser)
    return parser.parse_args()


def draw(args):
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


def main():
    args = parse_args()
    with plain_errors('vis_rollout.py'):
        draw(args)
    print(args.out)


if __name__ == '__main__':
    main()
