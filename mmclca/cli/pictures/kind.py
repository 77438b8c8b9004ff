# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What the commands share that draw a trained model."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mmclca.utils.lazy import lazy

from ..arguments import Parser, add_model_arguments, whole
from ..mistakes import plain_errors

apis = lazy('mmclca.apis')
model_files = lazy('mmclca.cli.model_files')
figures = lazy('mmclca.visualization.figures')
batches = lazy('mmclca.datasets.batches')
synthetic_leaves = lazy('mmclca.datasets.synthetic_leaves')


@dataclass(frozen=True)
class Kind:
    """Be a command: a kind of picture.

    ``options`` adds its options to a parser; ``draw`` draws what the command
    line asks for and gives the picture's path, None where there is none. The
    docstring of ``draw`` is what ``--help`` says.
    """

    options: Callable
    draw: Callable

    def parse_args(self):
        parser = Parser(description=' '.join(self.draw.__doc__.split()))
        self.options(parser)
        add_model_arguments(parser)
        return parser.parse_args()

    @plain_errors()
    def main(self, args):
        if out := self.draw(args):
            print(out)


def add_images(parser, out='--out', required=True):
    """Add what commands take that draw a model on images."""
    parser.add(
        'files',
        'a config (path or name; without, the one in the checkpoint), '
        'weights and images, in any order',
        nargs='+',
        metavar='[CONFIG] CHECKPOINT IMAGE',
    )
    add_leaves(parser)
    add_out(parser, out, required)


def add_leaves(parser):
    """Add synthetic leaves in place of photographs."""
    parser.add(
        '--leaves',
        'draw N synthetic leaves besides, each of another cultivar',
        0,
        type=whole,
        metavar='N',
    )


def add_out(parser, names='--out', required=True):
    """Add the picture to write."""
    parser.add(
        names,
        'picture to write',
        type=Path,
        required=required,
        dest='out',
        metavar='OUT',
    )


def add_model(parser):
    """Add what commands take that draw a model without images of one's own."""
    parser.add(
        'files',
        'a config (path or name; without, the one in the checkpoint) and '
        'weights',
        nargs='+',
        metavar='[CONFIG] CHECKPOINT',
    )
    add_out(parser)


def add_split(parser):
    """Add the model, and the data set of its config."""
    add_model(parser)
    splits = ('train', 'val', 'test')
    parser.add('--split', 'images of which split', 'test', choices=splits)


def load(args, files=None):
    """Load the model that the command line names, and no images."""
    figures.check_picture(args.out)
    config, checkpoint, images = model_files.sort_files(files or args.files)
    if images:
        raise ValueError(f'{images[0]}: no images are read, leave them out')
    return apis.TokenReductionInferencer(
        config, checkpoint, args.device, options=args.cfg_options
    )


def load_with_views(args):
    """Load the model that the command line names, and images as it sees."""
    config, checkpoint, places = model_files.sort_files(args.files)
    images = images_of(args, places)
    inferencer = apis.TokenReductionInferencer(
        config, checkpoint, args.device, options=args.cfg_options
    )
    return inferencer, views(inferencer.model, inferencer.pipeline, images)


def images_of(args, places, seed=0):
    """Read the images of the command line, once a picture can be written."""
    figures.check_picture(args.out)
    leaves = synthetic_leaves.drawn_leaves(args.leaves, seed)
    images = [*model_files.read_images(places), *leaves]
    if not images:
        raise ValueError('nothing to draw: name images, or give --leaves 1')
    return images


def views(model, pipeline, images):
    """Prepare images as a model sees them."""
    return [batches.view(model, pipeline, *image) for image in images]
