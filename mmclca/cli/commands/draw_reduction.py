# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw which patches each stage keeps, merges or mixes."""

import sys
from pathlib import Path

from mmclca.checkpoints.fitted import WEIGHTS, is_checkpoint
from mmclca.utils.lazy import lazy

from .. import Parser, plain_errors
from ..arguments import add_cfg_options, add_leaves

apis_loading = lazy('mmclca.apis.loading')
loading = lazy('mmclca.checkpoints.loading')
model_files = lazy('mmclca.cli.model_files')
configs = lazy('mmclca.configs')
batches = lazy('mmclca.datasets.batches')
synthetic_leaves = lazy('mmclca.datasets.synthetic_leaves')
visualization = lazy('mmclca.visualization')
runner = lazy('mmengine.runner')
torch = lazy('torch')

PICTURES = ('.jpeg', '.jpg', '.pdf', '.png', '.svg', '.webp')


def parse_args():
    parser = Parser(
        description='Draw a row an image: the image, then each stage. '
        'A legend says what became of the patches'
    )
    parser.add('config', 'path or name of a config with a reducer')
    parser.add(
        'files',
        f'weights ({" ".join(WEIGHTS)} or an address with ://; without, '
        'they are random), then images',
        nargs='*',
        metavar='[CHECKPOINT] IMAGE',
    )
    parser.add(
        '--pretrained',
        'weights that a training begins with, in place of a trained '
        'CHECKPOINT: what is missing, head and reducer, stays random',
        metavar='FILE',
    )
    add_leaves(parser)
    parser.add('--seed', 'of leaves and random weights', 0)
    parser.add(
        '--out',
        f'picture to write ({" ".join(PICTURES)})',
        type=Path,
        required=True,
    )
    add_cfg_options(parser)
    args = parser.parse_args()
    first = args.files[0] if args.files else ''
    named = '://' in first or is_checkpoint(first)
    args.checkpoint = args.files.pop(0) if named else None
    if args.checkpoint and args.pretrained:
        parser.error('a checkpoint and --pretrained: leave one out')
    if args.leaves < 0 or not (args.files or args.leaves):
        parser.error(
            'nothing to draw: name images, or give --leaves 1 or more'
        )
    if args.out.suffix.lower() not in PICTURES:
        parser.error(f'--out {args.out}: must end in {" ".join(PICTURES)}')
    return args


def build(cfg, checkpoint, pretrained):
    """The classifier of a config, with weights where there are any.

    Args:
        cfg (mmengine.Config): The config.
        checkpoint (str, optional): Weights of all of the model.
        pretrained (str, optional): Weights of a part of it.

    Raises:
        ValueError: If there is nothing to draw of it.
    """
    model = apis_loading.build_classifier(cfg)
    visualization.check_reduces(model.backbone)
    if checkpoint:
        loading.load_trained(model, checkpoint)
    elif pretrained:
        runner.load_checkpoint(model, pretrained, map_location='cpu')
        loading.refuse_broken(model, pretrained)
    else:
        print(
            'no checkpoint after the config: weights are random',
            file=sys.stderr,
        )
    return model


def draw(args):
    cfg = configs.read_config(args.config, args.cfg_options)
    images = [
        *model_files.read_images(args.files),
        *synthetic_leaves.drawn_leaves(args.leaves, args.seed),
    ]
    torch.manual_seed(args.seed)
    model = build(cfg, args.checkpoint, args.pretrained)
    pipeline = batches.Preparation(cfg, model.backbone.img_size)
    views = [batches.view(model, pipeline, *image) for image in images]
    found = visualization.survivors(model, views)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    visualization.draw_survivors(found, args.out)


def main(args):
    with plain_errors(args.config):
        draw(args)
    print(args.out)
