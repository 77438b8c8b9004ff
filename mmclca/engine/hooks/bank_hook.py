# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch
import torch.nn.functional as F
from mmengine.dist import all_reduce, get_dist_info
from mmengine.hooks import Hook
from torch import Tensor

from mmclca.datasets.batches import batches, dataset_of
from mmclca.registry import HOOKS
from mmclca.utils.wrappers import inner_model


@HOOKS.register_module()
class BankHook(Hook):
    """Give ``mmclca.Grafit`` its bank, a row for each training image.

    Before validation and tests all rows are made anew from the training
    images, prepared as the test images are; after a validation, training
    goes on with its own rows.
    """

    priority = 'HIGH'

    def before_run(self, runner) -> None:
        """Size the bank, before weights are loaded."""
        images = dataset_of(runner.cfg, 'train', pipeline=[])
        labels = torch.from_numpy(images.get_gt_labels())
        inner_model(runner.model).head.start(labels)
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
        pipeline = cfg.test_dataloader.dataset.pipeline
        images = dataset_of(cfg, 'train', pipeline=pipeline)
        rank, processes = get_dist_info()
        own = range(rank, len(images), processes)
        rows = torch.zeros_like(model.head.bank)
        model.eval()  # as the loops do next
        for batch in batches(model, images, own):
            (found,) = model.extract_feat(batch.images)
            rows[batch.positions] = F.normalize(found.to(rows), dim=1)
        all_reduce(rows)
        return rows
