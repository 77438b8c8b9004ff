# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Draw one row per image: the image, its visible patches and the
reconstruction of a masked autoencoder; for MIRL the main part, the
residual and the sum of each pair of segments.
"""

from .. import model_files
from ..listing import Listing
from ..picture_inputs import add_images, read_or_draw_images

LISTING = Listing(
    'analyze', 'reconstructions of a masked autoencoder', 'pretraining'
)


def add_arguments(parser):
    add_images(parser)
    parser.add('--seed', 'random seed of leaves and masks', 0)


def draw(args):
    import torch

    from mmclca.apis.loading import build_classifier, config_and_weights
    from mmclca.checkpoints.load import load
    from mmclca.datasets.batches import Preparation
    from mmclca.visualization import reconstruction_figure
    from mmclca.visualization.figures import save_figure

    config, checkpoint, places = model_files.sort_files(args.files)
    images = read_or_draw_images(args, places, args.seed)
    cfg, opened = config_and_weights(config, checkpoint, args.cfg_options)
    model = build_classifier(cfg)
    load(model, opened)
    prepare = Preparation(cfg, model.backbone.img_size)
    inputs = torch.stack([prepare(image)['inputs'] for _, image in images])
    torch.manual_seed(args.seed)
    figure = reconstruction_figure(model.eval(), inputs)
    return save_figure(figure, args.out)
