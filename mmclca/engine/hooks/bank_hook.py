# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch
import torch.nn.functional as F
from mmengine.dist import all_reduce, get_dist_info
from mmengine.hooks import Hook
from torch import Tensor

from mmclca.datasets.batches import batches, dataset_of
from mmclca.models import Grafit
from mmclca.registry import HOOKS
from mmclca.utils.wrappers import inner_model


@HOOKS.register_module()
class BankHook(Hook):
    """Give :class:`Grafit` its bank, a row for each training image.

    Before validation and tests all rows are made anew from the training
    images, prepared as the test images are; after a validation, training
    goes on with its own rows.

    Args:
        batch_size (int): Images at a time. Defaults to 64.
    """

    priority = 'HIGH'

    def __init__(self, batch_size: int = 64):
        self.batch_size = batch_size
        self.own = None

    def before_run(self, runner) -> None:
        """Size the bank, before weights are loaded.

        Raises:
            ValueError: If the model has no bank.
        """
        model = inner_model(runner.model)
        if not isinstance(model, Grafit):
            raise ValueError(
                f'{type(model).__name__} has no bank: BankHook is for '
                'mmclca.Grafit, remove it from custom_hooks'
            )
        infos = dataset_of(runner.cfg, 'train', pipeline=[])
        labels = [
            infos.get_data_info(i)['gt_label'] for i in range(len(infos))
        ]
        model.head.start(torch.tensor(labels))
        runner.cfg.model.num_images = len(labels)

    def before_val(self, runner) -> None:
        """Keep the rows of the training, and make others."""
        head = inner_model(runner.model).head
        self.own, head.bank = head.bank, self._rows(runner)

    def after_val(self, runner) -> None:
        """Take the rows of the training again."""
        inner_model(runner.model).head.bank = self.own

    def before_test(self, runner) -> None:
        """Make all rows anew."""
        inner_model(runner.model).head.bank = self._rows(runner)

    @torch.no_grad()
    def _rows(self, runner) -> Tensor:
        """Embed the training images, each process its share."""
        model, cfg = inner_model(runner.model), runner.cfg
        loader = cfg.get('test_dataloader') or cfg.val_dataloader
        pipeline = loader.dataset.pipeline
        images = dataset_of(cfg, 'train', pipeline=pipeline)
        rank, processes = get_dist_info()
        own = range(rank, len(images), processes)
        rows, training = torch.zeros_like(model.head.bank), model.training
        model.eval()
        for batch in batches(model, images, own, self.batch_size):
            (found,) = model.extract_feat(batch.images)
            rows[batch.positions] = F.normalize(found.to(rows), dim=1)
        model.train(training)
        all_reduce(rows)
        return rows
