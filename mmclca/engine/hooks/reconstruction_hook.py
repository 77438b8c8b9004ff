# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch
from mmengine.dist import master_only
from mmengine.hooks import Hook

from mmclca.registry import HOOKS
from mmclca.utils.messages import integer
from mmclca.utils.random_state import same_random_state
from mmclca.utils.wrappers import inner_model
from mmclca.visualization.figures import to_array
from mmclca.visualization.reconstructions import reconstruction_figure

from .token_visualization_hook import spread


@HOOKS.register_module()
class ReconstructionHook(Hook):
    """Draw reconstructions of training images by a masked autoencoder.

    After an epoch of pre-training, one picture named ``reconstructions`` goes
    to the visualizer. It shows original images, their visible patches and
    reconstructions; for MIRL, the main part, the residual and the sum of each
    pair. The images are evenly spread over the dataset. Random numbers for
    training stay the same. Only the first process draws.

    Args:
        interval (int): Epochs between pictures. Defaults to 10.
        num_images (int): Images to draw. Defaults to 4.

    Raises:
        ValueError: If ``interval`` or ``num_images`` is below 1.
    """

    def __init__(self, interval: int = 10, num_images: int = 4):
        integer(interval=interval, num_images=num_images)
        self.interval, self.num_images = interval, num_images

    @master_only
    def after_train_epoch(self, runner) -> None:
        """Draw a picture every ``interval`` epochs."""
        if not self.every_n_epochs(runner, self.interval):
            return
        dataset = runner.train_dataloader.dataset
        with same_random_state():
            chosen = spread(len(dataset), self.num_images)
            inputs = torch.stack([dataset[i]['inputs'] for i in chosen])
            figure = reconstruction_figure(inner_model(runner.model), inputs)
        step = runner.epoch + 1
        name = 'reconstructions'
        runner.visualizer.add_image(name, to_array(figure), step)
