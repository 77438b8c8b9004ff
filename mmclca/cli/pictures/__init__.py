# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Commands that draw pictures of a trained model, one per kind.

The scripts in ``tools/visualization`` and ``mmclca COMMAND`` run ``KINDS``
like the modules of ``mmclca.cli.commands``.
"""

from . import comparisons, images, splits
from .kind import Kind, add_images

KINDS = {
    'draw_reduction': Kind(images.add_reduction, images.draw_reduction),
    'vis_agreement': Kind(
        comparisons.add_agreement, comparisons.draw_agreement
    ),
    'vis_cam': Kind(images.add_cam, images.draw_cam),
    'vis_cka': Kind(comparisons.add_cka, comparisons.draw_cka),
    'vis_confusions': Kind(splits.add_confusions, splits.draw_confusions),
    'vis_cross_patch': Kind(splits.add_cross_patch, splits.draw_cross_patch),
    'vis_pooling': Kind(images.add_pooling, images.draw_pooling),
    'vis_reconstruction': Kind(
        images.add_reconstruction, images.draw_reconstruction
    ),
    'vis_rollout': Kind(add_images, images.draw_rollout),
    'vis_tsne': Kind(splits.add_tsne, splits.draw_tsne),
}
