# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw one row per image: the image and its attention rollout, the
contribution of each patch to the last CLS token, through kept, fused,
merged and cached tokens.
"""

from ..listing import Listing
from ..picture_inputs import add_images, load_with_views

LISTING = Listing('analyze', 'attention rollout', 'pictures')


def add_arguments(parser):
    add_images(parser)


def draw(args):
    from mmclca.visualization import HeatMapRow, draw_heat_maps, rollout

    inferencer, views = load_with_views(args)
    rows = []
    for view in views:
        (drawn,) = rollout(inferencer.model, view.batch)
        maps = dict(rollout=drawn)
        rows.append(HeatMapRow(view.title, view.image, maps))
    label = 'share of the patch in the last CLS'
    return draw_heat_maps(rows, args.out, label)
