# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Options and loading shared by all picture commands."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mmclca.errors import Error
from mmclca.utils.messages import print_safe

from .. import model_files
from ..arguments import Parser, whole
from ..errors import usage_errors
from ..packages import apis, datasets, visualization


@dataclass(frozen=True)
class PictureCommand:
    """Command for one kind of picture.

    ``options`` adds its options to a parser; ``draw`` draws the picture and
    returns its path, None without one. The docstring of ``draw`` is the
    description in ``--help``.
    """

    options: Callable
    draw: Callable

    def parse_args(self):
        parser = Parser(description=' '.join(self.draw.__doc__.split()))
        self.options(parser)
        parser.share('--device', '--cfg-options')
        return parser.parse_args()

    @usage_errors()
    def main(self, args):
        if out := self.draw(args):
            print_safe(f'Saved      {out}')


def add_images(parser, out='--out', files='[CONFIG] CHECKPOINT IMAGE'):
    """Add the arguments for model, images and output picture."""
    add_model(parser, out, files)
    leaves = 'number of additional synthetic leaves, each of another cultivar'
    parser.add('--leaves', leaves, 0, type=whole, metavar='N')


def add_model(parser, out='--out', files='[CONFIG] CHECKPOINT'):
    """Add the arguments for model and output picture."""
    meaning = 'files in any order (default config: stored in the checkpoint)'
    parser.add('files', meaning, nargs='+', metavar=files)
    more = dict(required=True, dest='out', metavar='OUT')
    parser.add(out, 'picture to write', type=Path, **more)


def add_split(parser):
    """Add the arguments for model, output picture and dataset split."""
    add_model(parser)
    splits = ('train', 'val', 'test')
    parser.add('--split', 'split of the images', 'test', choices=splits)


def load(args, files, new_last_layer=False):
    """Check the output path, then load the model; with ``new_last_layer`` the
    checkpoint may lack the last layer, as after pre-training.
    """
    visualization.figures.check_picture(args.out)
    config, checkpoint, images = model_files.sort_files(files)
    if images:
        raise Error(f'{images[0]}: this command takes no images')
    how = args.cfg_options, args.device, new_last_layer
    return apis.loading.load_classifier(config, checkpoint, *how)


def load_with_views(args):
    """Load the model and its preprocessed images."""
    config, checkpoint, places = model_files.sort_files(args.files)
    images = images_of(args, places)
    inferencer = model_files.load(args, config, checkpoint)
    return inferencer, views(inferencer.model, inferencer.pipeline, images)


def images_of(args, places, seed=0):
    """Check the output path, then read the images and draw the leaves."""
    visualization.figures.check_picture(args.out)
    leaves = datasets.synthetic_leaves.generate_leaves(args.leaves, seed)
    images = [*model_files.read_images(places), *leaves]
    if not images:
        raise Error('no images given: name images, or add --leaves 1')
    return images


def check_labels(option, labels, number):
    """Raise if a label is not in range(number)."""
    wrong = [label for label in labels if not 0 <= label < number]
    if wrong:
        raise Error(
            f'{option} {" ".join(map(str, wrong))}: expected labels from 0 '
            f'to {number - 1}'
        )


def views(model, pipeline, images):
    """Preprocess images for a model."""
    view = datasets.batches.view
    return [view(model, pipeline, *image) for image in images]
