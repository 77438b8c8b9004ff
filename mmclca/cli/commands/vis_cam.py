# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/visualization/vis_cam.py`` does."""

import torch

from mmclca.models import as_reducible
from mmclca.visualization import Heated, class_activation_maps, draw_heat_maps
from mmclca.visualization.cam import smoothed_maps, weights_by_layer
from mmclca.visualization.cam_methods import method_named
from mmclca.visualization.figure_files import check_picture
from mmclca.visualization.inputs import view
from mmclca.visualization.reductions import patches_left

from .. import plain_errors
from ..model_files import load, read_images, sort_files


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
    look = smoothed_maps if args.aug_smooth else class_activation_maps
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
    return Heated(one.title, one.image, above)


def said_of_layers(model, batch, layers):
    """How many patches are left in each of them, if not all; once each."""
    weights = weights_by_layer(model, batch)
    said = [patches_left(weights[number][0]) for number in layers]
    return list(dict.fromkeys(filter(None, said)))


def preview(args):
    """Layers from the first to the last, as --target-layers takes them."""
    config, checkpoint, _ = sort_files(args.files)
    model = load(config, checkpoint, args.cfg_options, args.device).model
    backbone = as_reducible(model.backbone)
    for number in range(len(backbone.layers)):
        stage = backbone.stage_of.get(number)
        reduced = '' if stage is None else f'  (reduction {stage + 1})'
        print(f'backbone.layers[{number}].ln1{reduced}')


def draw(args):
    check_picture(args.save_path)
    method_named(args.method)
    config, checkpoint, paths = sort_files(args.files)
    images = read_images(paths)
    if not images:
        raise ValueError('nothing to draw: name images')
    inferencer = load(config, checkpoint, args.cfg_options, args.device)
    model, names = inferencer.model, inferencer.classes
    check_labels(args.target_category or (), names)
    views = [view(model, inferencer.pipeline, *image) for image in images]
    rows = [heated(model, names, one, args) for one in views]
    draw_heat_maps(rows, args.save_path, 'how much a patch speaks for it')
    print(args.save_path)


@plain_errors()
def main(args):
    (preview if args.preview_model else draw)(args)
