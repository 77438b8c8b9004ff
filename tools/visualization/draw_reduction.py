# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw which patches each stage keeps, merges or mixes."""

import argparse
import sys
from pathlib import Path

import torch
from mmengine.registry import init_default_scope
from mmengine.runner import load_checkpoint
from mmpretrain.registry import MODELS

from mmclca.apis.stored import WEIGHTS, is_checkpoint
from mmclca.models import TokenReductionViT
from mmclca.utils.command_line import (
    add_cfg_options,
    plain_errors,
    read_config,
)
from mmclca.utils.trained import load_trained
from mmclca.visualization import draw_reductions, reduced
from mmclca.visualization.inputs import (
    drawn_leaves,
    evaluation_transforms,
    view,
)
from mmclca.visualization.model_files import read_images

PICTURES = ('.jpeg', '.jpg', '.pdf', '.png', '.svg', '.webp')


def parse_args():
    parser = argparse.ArgumentParser(
        description='Draw a row an image: the image, then each stage. '
        'A legend says what became of the patches'
    )
    parser.add_argument(
        'config', help='path or name of a config with a reducer'
    )
    parser.add_argument(
        'files',
        nargs='*',
        metavar='[CHECKPOINT] IMAGE',
        help=f'weights ({" ".join(WEIGHTS)} or an address with ://; without, '
        'they are random), then images',
    )
    parser.add_argument(
        '--pretrained',
        metavar='FILE',
        help='weights that a training begins with, in place of a trained '
        'CHECKPOINT: what they lack, head and reducer, stays random',
    )
    parser.add_argument(
        '--leaves',
        type=int,
        default=0,
        metavar='N',
        help='draw N synthetic leaves besides, each of another cultivar',
    )
    parser.add_argument(
        '--seed', type=int, default=0, help='of leaves and random weights'
    )
    parser.add_argument(
        '--out',
        type=Path,
        required=True,
        help=f'picture to write ({" ".join(PICTURES)})',
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
    preprocessor = cfg.get('data_preprocessor')
    cfg.model.pop('teacher', None)  # its files are not asked for
    model = MODELS.build(
        cfg.model, default_args=dict(data_preprocessor=preprocessor)
    )
    backbone = model.backbone
    if not (isinstance(backbone, TokenReductionViT) and backbone.reduce_at):
        raise ValueError(
            f'{cfg.filename}: a {type(backbone).__name__} that reduces '
            'nothing; give a config with backbone=dict(type='
            "'mmclca.TokenReductionViT', reducer=..., reduce_at=...)"
        )
    if checkpoint:
        load_trained(model, checkpoint)
    elif pretrained:
        load_checkpoint(model, pretrained, map_location='cpu')
    else:
        print(
            'no checkpoint after the config: weights are random',
            file=sys.stderr,
        )
    return model.eval()


def draw(args):
    cfg = read_config(args.config, args.cfg_options)
    init_default_scope('mmpretrain')
    images = [*read_images(args.files), *drawn_leaves(args.leaves, args.seed)]
    torch.manual_seed(args.seed)
    model = build(cfg, args.checkpoint, args.pretrained)
    pipeline = evaluation_transforms(cfg, model.backbone.img_size)
    views = [view(model, pipeline, *image) for image in images]
    rows = reduced(model.backbone, views)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    layers = [f'after layer {layer}' for layer in model.backbone.reduce_at]
    draw_reductions(rows, args.out, layers)


def main():
    args = parse_args()
    with plain_errors(args.config):
        draw(args)
    print(args.out)


if __name__ == '__main__':
    main()
