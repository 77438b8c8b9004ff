# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch
import torch.nn.functional as F
from mmengine.dist import all_reduce, get_dist_info
from mmengine.hooks import Hook
from torch import Tensor

from mmclca.datasets.batches import batches, build_dataset
from mmclca.registry import HOOKS
from mmclca.utils.wrappers import inner_model


@HOOKS.register_module()
class BankHook(Hook):
    """Fill the feature bank of ``mmclca.Grafit`` from the training images.

    The bank has one row per training image. Validation and tests recompute
    all rows with the test pipeline. After validation, training resumes with
    its own rows.
    """

    priority = 'HIGH'

    def before_run(self, runner) -> None:
        """Allocate the bank before weights are loaded."""
        images = build_dataset(runner.cfg, 'train', pipeline=[])
        labels = torch.from_numpy(images.get_gt_labels())
        inner_model(runner.model).head.start(labels)
        runner.cfg.model.num_images = len(labels)

    def before_val(self, runner) -> None:
        """Back up the training rows and recompute the bank."""
        head = inner_model(runner.model).head
        self.own, head.bank = head.bank, self._rows(runner)

    def after_val_epoch(self, runner, metrics=None) -> None:
        """Restore the training rows before a checkpoint is written."""
        inner_model(runner.model).head.bank = self.own

    def before_test(self, runner) -> None:
        """Recompute the bank."""
        inner_model(runner.model).head.bank = self._rows(runner)

    @torch.no_grad()
    def _rows(self, runner) -> Tensor:
        """Embed the training images (N, D), split over the processes."""
        model, cfg = inner_model(runner.model), runner.cfg
        pipeline = cfg.test_dataloader.dataset.pipeline
        images = build_dataset(cfg, 'train', pipeline=pipeline)
        rank, processes = get_dist_info()
        indices = range(rank, len(images), processes)
        rows = torch.zeros_like(model.head.bank)
        model.eval()  # as the loops do next
        for batch in batches(model, images, indices):
            (features,) = model.extract_feat(batch.images)
            rows[batch.positions] = F.normalize(features.to(rows), dim=1)
        all_reduce(rows)
        return rows
