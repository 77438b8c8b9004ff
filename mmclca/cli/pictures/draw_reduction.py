# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw one row per image: the image, then the patches that remain after
each stage, with a legend.
"""

from mmclca.errors import Error
from mmclca.utils.messages import warn

from .. import model_files
from ..listing import Listing
from ..picture_inputs import add_images, preprocess, read_or_draw_images

LISTING = Listing(
    'analyze', 'draw the remaining patches after each stage', 'pictures'
)


def add_arguments(parser):
    add_images(parser, files='[CONFIG] [CHECKPOINT] IMAGE')
    parser.add('--pretrained FILE', 'weights instead of a CHECKPOINT')
    parser.add('--seed', 'random seed of leaves and weights', 0)


def draw(args):
    import torch

    from mmclca.apis.loading import config_and_weights
    from mmclca.datasets.batches import Preparation
    from mmclca.visualization import draw_kept_patches, find_kept_patches

    config, checkpoint, places = model_files.sort_files(args.files, True)
    if checkpoint and args.pretrained:
        raise Error('--pretrained excludes a checkpoint: omit one')
    images = read_or_draw_images(args, places, args.seed)
    cfg, opened = config_and_weights(config, checkpoint, args.cfg_options)
    torch.manual_seed(args.seed)
    gpu = 'cuda' if torch.cuda.is_available() else 'cpu'
    model = build(cfg, opened, args.pretrained).to(args.device or gpu)
    pipeline = Preparation(cfg, model.backbone.img_size)
    kept = find_kept_patches(model, preprocess(model, pipeline, images))
    return draw_kept_patches(kept, args.out)


def build(cfg, checkpoint, pretrained):
    """Build a classifier; load weights, or warn about random weights."""
    from mmclca.apis.loading import build_classifier
    from mmclca.checkpoints.load import load
    from mmclca.visualization import check_reduces

    model = build_classifier(cfg, pretrained)
    check_reduces(model.backbone)
    if checkpoint:
        load(model, checkpoint)
    elif not pretrained:
        warn('weights are random, as no checkpoint is given')
    return model.eval()
