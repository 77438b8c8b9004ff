# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Pictures with one row per image."""

import argparse
import re

from mmclca.errors import Error
from mmclca.utils.messages import describe_unknown, warn

from .. import model_files
from ..errors import usage_errors
from ..packages import apis, checkpoints, datasets, torch, visualization
from . import command

# see visualization.cam
CAM_METHODS = (
    *('gradcam', 'gradcam++', 'xgradcam', 'layercam'),
    *('hirescam', 'eigencam', 'eigengradcam'),
)
LAYER = r'(?:(?:backbone\.)?layers[.[])?(-?\d+)\]?(?:\.ln1)?'


def draw_rollout(args):
    """Draw one row per image: the image and its attention rollout, the
    contribution of each patch to the last CLS token, through kept, fused,
    merged and cached tokens.
    """
    inferencer, found = command.load_with_views(args)
    rows = []
    for one in found:
        (drawn,) = visualization.rollout(inferencer.model, one.batch)
        maps = dict(rollout=drawn)
        rows.append(visualization.HeatMapRow(one.title, one.image, maps))
    label = 'share of the patch in the last CLS'
    return visualization.draw_heat_maps(rows, args.out, label)


def add_pooling(parser):
    command.add_images(parser)
    parser.add(
        '--classes',
        'classes to draw (default: three highest scores)',
        nargs='+',
        metavar='CLASS',
    )


def draw_pooling(args):
    """Draw one row per image: the image and the weights of its patches in
    attention pooling. One map per class with class queries (PatchConvNet,
    AttentionPool), one map with one query; for CaiT one row per class layer
    and one map per head.
    """
    inferencer, found = command.load_with_views(args)
    names = list(inferencer.classes)
    labels = [parse_class(text, names) for text in args.classes or ()]
    draw, model = visualization.pooled, inferencer.model
    rows = [row for one in found for row in draw(model, one, names, labels)]
    label = 'share of the patch in what is pooled'
    return visualization.draw_heat_maps(rows, args.out, label)


def parse_class(text, names):
    """Return the label for a class name or number."""
    if text in names:
        return names.index(text)
    if text.isdecimal() and int(text) < len(names):
        return int(text)
    raise Error(
        f'--classes: {describe_unknown(text, names)}, or labels from 0 to '
        f'{len(names) - 1}'
    )


def add_reconstruction(parser):
    command.add_images(parser)
    parser.add('--seed', 'random seed of leaves and masks', 0)


def draw_reconstruction(args):
    """Draw one row per image: the image, its visible patches and the
    reconstruction of a masked autoencoder; for MIRL the main part, the
    residual and the sum of each pair of segments.
    """
    config, checkpoint, places = model_files.sort_files(args.files)
    images = command.images_of(args, places, args.seed)
    cfg, opened = apis.loading.config_and_weights(
        config, checkpoint, args.cfg_options
    )
    model = apis.loading.build_classifier(cfg)
    checkpoints.load.load(model, opened)
    prepare = datasets.batches.Preparation(cfg, model.backbone.img_size)
    inputs = torch.stack([prepare(image)['inputs'] for _, image in images])
    torch.manual_seed(args.seed)
    figure = visualization.reconstruction_figure(model.eval(), inputs)
    return visualization.figures.save(figure, args.out)


def add_cam(parser):
    command.add_images(parser, '--save-path --out')
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


def layer(text):
    """Parse a layer number or a module name such as backbone.layers[-1]."""
    found = re.fullmatch(LAYER, text)
    if not found:
        raise argparse.ArgumentTypeError(
            f'{text!r}: expected a number or backbone.layers[NUMBER].ln1'
        )
    return int(found[1])


def draw_cam(args):
    """Draw one row per image: the image and a Grad-CAM heat map per class.
    Gradients of the input tokens of a layer are mapped back to the patches.
    """
    inferencer, found = command.load_with_views(args)
    labels = args.target_category or ()
    command.check_labels('--target-category', labels, len(inferencer.classes))
    rows = [heat_map_row(inferencer, one, args) for one in found]
    label = 'contribution of the patch to the score'
    return visualization.draw_heat_maps(rows, args.out, label)


def heat_map_row(inferencer, one, args):
    """Compute one map per class, averaged over the layers."""
    model, cam = inferencer.model, visualization.cam
    with torch.no_grad():
        best = int(model(one.batch, mode='tensor').argmax())
    draw = cam.smoothed_maps if args.aug_smooth else cam.class_activation_maps
    how = dict(method=args.method, eigen_smooth=args.eigen_smooth)
    maps = {}
    for label in args.target_category or [best]:
        of_layers = [
            draw(model, one.batch, categories=[label], layer=number, **how)[0]
            for number in args.target_layers
        ]
        scaled = [drawn / drawn.max().clamp(min=1e-12) for drawn in of_layers]
        what = 'predicted' if label == best else 'not predicted'
        title = f'{inferencer.classes[label]}\n({what})'
        maps[title] = torch.stack(scaled).mean(dim=0)
    left = describe_patches_left(model, one.batch, args.target_layers)
    maps = {'\n'.join([name, *left]): cam for name, cam in maps.items()}
    return visualization.HeatMapRow(one.title, one.image, maps)


def describe_patches_left(model, batch, layers):
    """Describe the number of remaining patches per layer, without repeats."""
    from mmclca.visualization.kept_patches import patches_left

    weights = visualization.cam.weights_per_layer(model, batch)
    lines = [patches_left(weights[number][0]) for number in layers]
    return list(dict.fromkeys(filter(None, lines)))


def add_reduction(parser):
    command.add_images(parser, files='[CONFIG] [CHECKPOINT] IMAGE')
    parser.add('--pretrained FILE', 'weights instead of a CHECKPOINT')
    parser.add('--seed', 'random seed of leaves and weights', 0)


def draw_reduction(args):
    """Draw one row per image: the image, then the patches that remain after
    each stage, with a legend.
    """
    config, checkpoint, places = model_files.sort_files(args.files, True)
    if checkpoint and args.pretrained:
        raise Error('--pretrained excludes a checkpoint: omit one')
    images = command.images_of(args, places, args.seed)
    with usage_errors(config):
        cfg, opened = apis.loading.config_and_weights(
            config, checkpoint, args.cfg_options
        )
    torch.manual_seed(args.seed)
    gpu = 'cuda' if torch.cuda.is_available() else 'cpu'
    model = build(cfg, opened, args.pretrained).to(args.device or gpu)
    pipeline = datasets.batches.Preparation(cfg, model.backbone.img_size)
    found = visualization.find_kept_patches(
        model, command.views(model, pipeline, images)
    )
    return visualization.draw_kept_patches(found, args.out)


def build(cfg, checkpoint, pretrained):
    """Build a classifier; load weights, or warn about random weights."""
    model = apis.loading.build_classifier(cfg, pretrained)
    visualization.check_reduces(model.backbone)
    if checkpoint:
        checkpoints.load.load(model, checkpoint)
    elif pretrained:
        checkpoints.load.refuse_broken(model, pretrained)
    else:
        warn('weights are random, as no checkpoint is given')
    return model.eval()
