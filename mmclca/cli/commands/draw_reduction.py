# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/visualization/draw_reduction.py`` does."""

import sys

import torch
from mmengine.registry import init_default_scope
from mmengine.runner import load_checkpoint
from mmpretrain.registry import MODELS

from mmclca.checkpoints.loading import load_trained, refuse_broken
from mmclca.configs import read_config
from mmclca.visualization import (
    check_reduces,
    draw_reductions,
    reduced,
    stage_titles,
)
from mmclca.visualization.inputs import (
    drawn_leaves,
    evaluation_transforms,
    view,
)

from .. import plain_errors
from ..model_files import read_images


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
    model = MODELS.build(
        cfg.model, default_args=dict(data_preprocessor=preprocessor)
    )
    check_reduces(model.backbone)
    if checkpoint:
        load_trained(model, checkpoint)
    elif pretrained:
        load_checkpoint(model, pretrained, map_location='cpu')
        refuse_broken(model, pretrained)
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
    draw_reductions(rows, args.out, stage_titles(model.backbone))


def main(args):
    with plain_errors(args.config):
        draw(args)
    print(args.out)
