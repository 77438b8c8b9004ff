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
    """Draws what a masked autoencoder makes of some training images.

    After epochs of pre-training: originals, their visible patches and
    reconstructions, of MIRL the main part, the residual and the sum of each
    pair. The images are evenly spread over the data set, and one picture goes
    to the visualizer, named ``reconstructions``. Random numbers of the
    training stay as they are without the hook. It draws on the first process
    alone.

    Args:
        interval (int): Epochs between pictures. Defaults to 10.
        num_images (int): Images to draw. Defaults to 4.

    Raises:
        ValueError: If one of them is below 1.
    """

    def __init__(self, interval: int = 10, num_images: int = 4):
        integer(interval=interval, num_images=num_images)
        self.interval, self.num_images = interval, num_images

    @master_only
    def after_train_epoch(self, runner) -> None:
        """Draw, where it is time to."""
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
