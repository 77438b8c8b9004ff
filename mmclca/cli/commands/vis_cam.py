# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw class activation maps (Grad-CAM): what speaks for a class."""

import argparse
import re
from pathlib import Path

from mmclca.utils.lazy import lazy

from .. import Parser, plain_errors
from ..arguments import add_model_arguments

apis = lazy('mmclca.apis')
loading = lazy('mmclca.apis.loading')
model_files = lazy('mmclca.cli.model_files')
batches = lazy('mmclca.datasets.batches')
models = lazy('mmclca.models')
visualization = lazy('mmclca.visualization')
visualization_cam = lazy('mmclca.visualization.cam')
figures = lazy('mmclca.visualization.figures')
survivors = lazy('mmclca.visualization.survivors')
torch = lazy('torch')

LAYER = r'(?:(?:backbone\.)?layers[.[])?(-?\d+)\]?(?:\.ln1)?'


def parse_args():
    parser = Parser(
        description='Draw a row an image: the image, and for each class its '
        'patches as bright as they speak for it (Grad-CAM of the tokens that '
        'a layer reads, put back in the places of their patches)'
    )
    parser.add(
        'files',
        'images, a config (path or name; without, the one in the checkpoint) '
        'and weights, in any order',
        nargs='+',
        metavar='IMAGE [CONFIG] CHECKPOINT',
    )
    parser.add(
        '--target-layers --target-layer',
        'layers from 0, or from the last, -1, also as '
        'backbone.layers[-1].ln1; of several the mean (default: -1)',
        [-1],
        nargs='+',
        type=layer,
        metavar='LAYER',
    )
    parser.add(
        '--target-category',
        'labels of the classes to explain (default: the one that the model '
        'predicts)',
        nargs='+',
        type=int,
    )
    add_method_arguments(parser)
    parser.add('--save-path', 'picture to write', type=Path)
    parser.flag(
        '--preview-model', 'list what --target-layers may name, and end'
    )
    parser.flag(
        '--vit-like',
        "taken for granted; commands for mmpretrain's tool have it",
    )
    parser.add(
        '--num-extra-tokens',
        'not needed: the trace of the tokens tells which are patches',
        type=int,
    )
    add_model_arguments(parser)
    args = parser.parse_args()
    if not (args.save_path or args.preview_model):
        parser.error('name the picture to write: --save-path cam.png')
    return args


def add_method_arguments(parser):
    parser.add(
        '--method',
        'one of gradcam, gradcam++, xgradcam, layercam, hirescam, eigencam, '
        'eigengradcam, in any case (default: %(default)s)',
        'GradCAM',
    )
    parser.flag(
        '--eigen-smooth',
        'first principal component of what channels add, not their sum',
    )
    parser.flag(
        '--aug-smooth',
        'mean of six views of an image, mirrored and lit otherwise',
    )


def layer(text):
    """The number of a layer, also out of the name of its module."""
    found = re.fullmatch(LAYER, text)
    if not found:
        raise argparse.ArgumentTypeError(
            f'{text!r}: a number, or backbone.layers[NUMBER].ln1'
        )
    return int(found[1])


def check_labels(labels, names):
    wrong = [label for label in labels if not 0 <= label < len(names)]
    if wrong:
        raise ValueError(
            f'--target-category {" ".join(map(str, wrong))}: the model has '
            f'the labels 0 to {len(names) - 1}'
        )


def heated(model, names, one, args):
    """A map for each class; layers count alike."""
    with torch.no_grad():
        best = int(model(one.batch, mode='tensor').argmax())
    look = (
        visualization_cam.smoothed_maps
        if args.aug_smooth
        else visualization.class_activation_maps
    )
    how = dict(method=args.method, eigen_smooth=args.eigen_smooth)
    maps = {}
    for label in args.target_category or [best]:
        of_layers = [
            look(model, one.batch, categories=[label], layer=number, **how)[0]
            for number in args.target_layers
        ]
        scaled = [cam / cam.max().clamp(min=1e-12) for cam in of_layers]
        what = 'predicted' if label == best else 'not predicted'
        maps[f'{names[label]}\n({what})'] = torch.stack(scaled).mean(dim=0)
    left = said_of_layers(model, one.batch, args.target_layers)
    above = {'\n'.join([name, *left]): cam for name, cam in maps.items()}
    return visualization.Heated(one.title, one.image, above)


def said_of_layers(model, batch, layers):
    """How many patches are left in each of them, if not all; once each."""
    weights = visualization_cam.weights_by_layer(model, batch)
    said = [survivors.patches_left(weights[number][0]) for number in layers]
    return list(dict.fromkeys(filter(None, said)))


def preview(args):
    """Layers from the first to the last, as --target-layers takes them."""
    config, checkpoint, _ = model_files.sort_files(args.files)
    model = loading.load_classifier(
        config, checkpoint, args.cfg_options, args.device
    )
    backbone = models.as_reducible(model.backbone)
    for number in range(len(backbone.layers)):
        stage = backbone.stage_of.get(number)
        reduced = '' if stage is None else f'  (reduction {stage + 1})'
        print(f'backbone.layers[{number}].ln1{reduced}')


def draw(args):
    figures.check_picture(args.save_path)
    visualization_cam.method_named(args.method)
    config, checkpoint, paths = model_files.sort_files(args.files)
    images = model_files.read_images(paths)
    if not images:
        raise ValueError('nothing to draw: name images')
    inferencer = apis.TokenReductionInferencer(
        config, checkpoint, args.device, options=args.cfg_options
    )
    model, names = inferencer.model, inferencer.classes
    check_labels(args.target_category or (), names)
    views = [
        batches.view(model, inferencer.pipeline, *image) for image in images
    ]
    rows = [heated(model, names, one, args) for one in views]
    visualization.draw_heat_maps(
        rows, args.save_path, 'how much a patch speaks for it'
    )
    print(args.save_path)


@plain_errors()
def main(args):
    (preview if args.preview_model else draw)(args)
