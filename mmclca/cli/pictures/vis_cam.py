# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw one row per image: the image and a Grad-CAM heat map per class.
Gradients of the input tokens of a layer are mapped back to the patches.
"""

import argparse
import re

from ..listing import Listing
from ..picture_inputs import add_images, check_label_range, load_with_views

LISTING = Listing('analyze', 'Grad-CAM heat map per class', 'pictures')
# see visualization.cam
CAM_METHODS = (
    'gradcam',
    'gradcam++',
    'xgradcam',
    'layercam',
    'hirescam',
    'eigencam',
    'eigengradcam',
)
LAYER = r'(?:(?:backbone\.)?layers[.[])?(-?\d+)\]?(?:\.ln1)?'


def add_arguments(parser):
    add_images(parser, '--save-path --out')
    parser.add(
        '--target-layers --target-layer',
        'layers, e.g. -1 or backbone.layers[-1].ln1 (default: -1)',
        [-1],
        nargs='+',
        type=layer,
        metavar='LAYER',
    )
    parser.add(
        '--target-category',
        'labels of the classes to explain (default: predicted class)',
        nargs='+',
        type=int,
    )
    parser.add(
        '--method',
        f'method: {", ".join(CAM_METHODS)} (default: GradCAM)',
        'gradcam',
        type=str.lower,
        choices=CAM_METHODS,
        metavar='METHOD',
    )
    parser.flag('--eigen-smooth', 'first principal component of the maps')
    parser.flag('--aug-smooth', 'average over six augmented views')


def draw(args):
    from mmclca.visualization import draw_heat_maps

    inferencer, views = load_with_views(args)
    labels = args.target_category or ()
    check_label_range('target_category', labels, len(inferencer.classes))
    rows = [heat_map_row(inferencer, view, args) for view in views]
    label = 'contribution of the patch to the score'
    return draw_heat_maps(rows, args.out, label)


def layer(name):
    """Parse a layer number or a module name such as backbone.layers[-1]."""
    match = re.fullmatch(LAYER, name)
    if not match:
        raise argparse.ArgumentTypeError(
            f'{name!r}: expected a number or backbone.layers[NUMBER].ln1'
        )
    return int(match[1])


def heat_map_row(inferencer, view, args):
    """Compute one map per class, averaged over the layers."""
    import torch

    from mmclca.visualization import HeatMapRow, cam

    model, cam = inferencer.model, cam
    with torch.no_grad():
        best = int(model(view.batch, mode='tensor').argmax())
    draw = cam.smoothed_maps if args.aug_smooth else cam.class_activation_maps
    options = dict(method=args.method, eigen_smooth=args.eigen_smooth)
    maps = {}
    for label in args.target_category or [best]:
        of_layers = [
            draw(
                model, view.batch, categories=[label], layer=number, **options
            )[0]
            for number in args.target_layers
        ]
        scaled = [drawn / drawn.max().clamp(min=1e-12) for drawn in of_layers]
        what = 'predicted' if label == best else 'not predicted'
        title = f'{inferencer.classes[label]}\n({what})'
        maps[title] = torch.stack(scaled).mean(dim=0)
    left = describe_patches_left(model, view.batch, args.target_layers)
    maps = {'\n'.join([name, *left]): cam for name, cam in maps.items()}
    return HeatMapRow(view.title, view.image, maps)


def describe_patches_left(model, batch, layers):
    """Describe the number of remaining patches per layer, without repeats."""
    from mmclca.visualization.cam import weights_per_layer
    from mmclca.visualization.kept_patches import patches_left

    weights = weights_per_layer(model, batch)
    lines = [patches_left(weights[number][0]) for number in layers]
    return list(dict.fromkeys(filter(None, lines)))
