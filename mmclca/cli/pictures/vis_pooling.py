# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw one row per image: the image and the weights of its patches in
attention pooling. One map per class with class queries (PatchConvNet,
AttentionPool), one map with one query; for CaiT one row per class layer
and one map per head.
"""

from mmclca.errors import Error
from mmclca.utils.messages import suggest_choices

from ..listing import Listing
from ..picture_inputs import add_images, load_with_views

LISTING = Listing('analyze', 'attention pooling per class', 'pictures')


def add_arguments(parser):
    add_images(parser)
    parser.add(
        '--classes',
        'classes to draw (default: three highest scores)',
        nargs='+',
        metavar='CLASS',
    )


def draw(args):
    from mmclca.visualization import draw_heat_maps, pooled

    inferencer, views = load_with_views(args)
    names = list(inferencer.classes)
    labels = [parse_class(name, names) for name in args.classes or ()]
    draw, model = pooled, inferencer.model
    rows = [row for view in views for row in draw(model, view, names, labels)]
    label = 'share of the patch in what is pooled'
    return draw_heat_maps(rows, args.out, label)


def parse_class(name, names):
    """Return the label for a class name or number."""
    if name in names:
        return names.index(name)
    if name.isdecimal() and int(name) < len(names):
        return int(name)
    raise Error(
        f'--classes: {suggest_choices(name, names)}, or labels from 0 to '
        f'{len(names) - 1}'
    )
