# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Arguments of the picture commands, and the models and images they name."""

from pathlib import Path

from mmclca.errors import Error

from . import model_files
from .arguments import whole


def add_images(parser, out='--out', files='[CONFIG] CHECKPOINT IMAGE'):
    """Add the arguments for model, images and output picture."""
    add_model(parser, out, files)
    leaves = 'number of additional synthetic leaves, each of another cultivar'
    parser.add('--leaves', leaves, 0, type=whole, metavar='N')


def add_model(parser, out='--out', files='[CONFIG] CHECKPOINT'):
    """Add the arguments for model, its device and config, and the picture."""
    meaning = 'files in any order (default config: stored in the checkpoint)'
    parser.add('files', meaning, nargs='+', metavar=files)
    parser.add(
        out,
        'picture to write',
        type=Path,
        required=True,
        dest='out',
        metavar='OUT',
    )
    parser.share('--device', '--cfg-options')


def add_split(parser):
    """Add the arguments for model, output picture and dataset split."""
    add_model(parser)
    splits = ('train', 'val', 'test')
    parser.add('--split', 'split of the images', 'test', choices=splits)


def load_model(args, files, new_last_layer=False):
    """Check the output path, then load the model.

    With ``new_last_layer``, the checkpoint may lack the last layer, as after
    pre-training.
    """
    from mmclca.apis.loading import load_classifier
    from mmclca.visualization.figures import check_picture

    check_picture(args.out)
    config, checkpoint, images = model_files.sort_files(files)
    if images:
        raise Error(f'{images[0]}: this command takes no images')
    return load_classifier(
        config, checkpoint, args.cfg_options, args.device, new_last_layer
    )


def load_with_views(args):
    """Load the model and its preprocessed images."""
    config, checkpoint, images = model_files.sort_files(args.files)
    images = read_or_draw_images(args, images)
    inferencer = model_files.load_inferencer(args, config, checkpoint)
    views = preprocess(inferencer.model, inferencer.pipeline, images)
    return inferencer, views


def read_or_draw_images(args, places, seed=0):
    """Check the output path, then read the images and draw the leaves."""
    from mmclca.datasets.synthetic_leaves import generate_leaves
    from mmclca.visualization.figures import check_picture

    check_picture(args.out)
    leaves = generate_leaves(args.leaves, seed)
    images = [*model_files.read_images(places), *leaves]
    if not images:
        raise Error('no images given: name images, or add `leaves=1`')
    return images


def preprocess(model, pipeline, images):
    """Preprocess images for a model."""
    from mmclca.datasets.batches import view

    return [view(model, pipeline, title, image) for title, image in images]


def check_label_range(setting, labels, num_classes):
    """Raise if a label of a setting is not in range(num_classes)."""
    wrong = [label for label in labels if not 0 <= label < num_classes]
    if wrong:
        raise Error(
            f'`{setting}` {" ".join(map(str, wrong))}: expected labels from 0 '
            f'to {num_classes - 1}'
        )
