# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Pictures of tokens and reconstructions during training."""

from pathlib import Path

import numpy as np
import torch
from mmengine.dist import master_only
from mmengine.hooks import Hook

from mmclca.datasets.batches import make_view
from mmclca.registry import HOOKS
from mmclca.utils.messages import check_integer
from mmclca.utils.random_state import preserve_random_state
from mmclca.utils.torch_versions import run_eagerly
from mmclca.utils.wrappers import inner_model
from mmclca.visualization import (
    check_reduces,
    find_kept_patches,
    plot_kept_patches,
)
from mmclca.visualization.figures import to_array
from mmclca.visualization.reconstructions import reconstruction_figure


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
        Error: If ``interval`` or ``num_images`` is below 1.
    """

    def __init__(self, interval: int = 10, num_images: int = 4):
        check_integer(interval=interval, num_images=num_images)
        self.interval, self.num_images = interval, num_images

    @master_only
    def after_train_epoch(self, runner) -> None:
        """Draw a picture every ``interval`` epochs."""
        if not self.every_n_epochs(runner, self.interval):
            return
        dataset = runner.train_dataloader.dataset
        with preserve_random_state():
            chosen = spread(len(dataset), self.num_images)
            inputs = torch.stack([dataset[i]['inputs'] for i in chosen])
            figure = reconstruction_figure(inner_model(runner.model), inputs)
        step = runner.epoch + 1
        name = 'reconstructions'
        runner.visualizer.add_image(name, to_array(figure), step)


@HOOKS.register_module()
class TokenVisualizationHook(Hook):
    """Draw the tokens kept at each stage for some validation images.

    Pictures are drawn after validation, with the validated weights. The
    images are the same each time and evenly spread over the dataset, which
    covers many classes if it is sorted by class. The visualizer receives one
    picture per image, named ``kept_patches_INDEX_FILE``: ``LocalVisBackend``
    writes to ``vis_data/vis_image``, and ``visualizer.vis_backends`` may add
    TensorBoard and WandB. Random numbers for training stay the same. Only the
    first process draws.

    Args:
        interval (int): Epochs between pictures. Iteration-based training and
            validation without training draw at every validation.
            Defaults to 1.
        num_images (int): Images to draw. Defaults to 4.

    Raises:
        Error: If ``interval`` or ``num_images`` is below 1; at the start
            of training or validation, if the model does not reduce tokens.
    """

    priority = 'ABOVE_NORMAL'  # run before EMAHook swaps weights back

    def __init__(self, interval: int = 1, num_images: int = 4):
        check_integer(interval=interval, num_images=num_images)
        self.interval, self.num_images = interval, num_images

    def before_train(self, runner) -> None:
        """Raise if the model does not reduce tokens."""
        check_reduces(inner_model(runner.model).backbone)

    def before_val(self, runner) -> None:
        """Raise if the model does not reduce tokens."""
        self.before_train(runner)

    def after_val_epoch(self, runner, metrics=None) -> None:
        """Draw every ``interval`` epochs."""
        if runner.epoch % self.interval == 0:
            self._draw(runner)

    @master_only
    @torch.no_grad()
    def _draw(self, runner) -> None:
        dataset = runner.val_dataloader.dataset
        # a compiled model would be recompiled for one image
        with preserve_random_state(), run_eagerly():
            for index in spread(len(dataset), self.num_images):
                self._draw_image(runner, dataset, index)

    def _draw_image(self, runner, dataset, index: int) -> None:
        model = inner_model(runner.model)
        packed = dataset[index]
        sample = packed['data_samples']
        view = make_view(model, '', packed['inputs'])
        scores = model(view.batch, mode='tensor')
        labels = int(sample.gt_label), int(scores.argmax())
        names = dataset.metainfo.get('classes') or range(max(labels) + 1)
        label, prediction = (names[index] for index in labels)
        view.title = f'{label}\npredicted: {prediction}'
        figure = plot_kept_patches(find_kept_patches(model, [view]))
        # a dataset may lack files
        name = f'kept_patches_{index}_{Path(sample.get("img_path", "")).stem}'
        by_epoch = (runner.cfg.train_cfg or {}).get('by_epoch', True)
        step = runner.epoch if by_epoch else runner.iter
        runner.visualizer.add_image(name, to_array(figure), step)


def spread(length: int, number: int) -> list[int]:
    """Up to ``number`` evenly spread indices into a list."""
    number = min(length, number)
    return np.linspace(0, length - 1, number).round().astype(int).tolist()
