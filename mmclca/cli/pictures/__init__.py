# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Commands that draw a trained model.

The scripts in ``tools/visualization`` and ``mmclca COMMAND`` run ``PICTURES``
like the modules in ``mmclca.cli.commands``.
"""

from . import comparisons, images, splits
from .command import PictureCommand, add_images

PICTURES = {
    'draw_reduction': PictureCommand(
        images.add_reduction, images.draw_reduction
    ),
    'vis_agreement': PictureCommand(
        comparisons.add_agreement, comparisons.draw_agreement
    ),
    'vis_cam': PictureCommand(images.add_cam, images.draw_cam),
    'vis_cka': PictureCommand(comparisons.add_cka, comparisons.draw_cka),
    'vis_confusions': PictureCommand(
        splits.add_confusions, splits.draw_confusions
    ),
    'vis_cross_patch': PictureCommand(
        splits.add_cross_patch, splits.draw_cross_patch
    ),
    'vis_pooling': PictureCommand(images.add_pooling, images.draw_pooling),
    'vis_reconstruction': PictureCommand(
        images.add_reconstruction, images.draw_reconstruction
    ),
    'vis_rollout': PictureCommand(add_images, images.draw_rollout),
    'vis_tsne': PictureCommand(splits.add_tsne, splits.draw_tsne),
}
