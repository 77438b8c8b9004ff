# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from pathlib import Path

import pytest
from mmengine.config import Config
from mmengine.evaluator import BaseMetric
from mmengine.runner import Runner
from tiny_run import write_run


class Given(BaseMetric):
    """Accuracies that were decided on beforehand."""

    values = ()

    def process(self, data_batch, data_samples):
        self.results.append(0)

    def compute_metrics(self, results):
        first, *self.values = self.values
        return dict(top1=first)


@pytest.mark.parametrize(
    'values, best', [((5, 9, 9, 7), 3), ((9, 5, 5, 5), 1), ((1, 1, 1, 1), 4)]
)
def test_last_of_equals_is_kept(tmp_path, values, best):
    cfg = Config.fromfile(write_run(tmp_path))
    cfg.work_dir = str(tmp_path / 'run')
    cfg.default_scope = 'mmpretrain'
    cfg.train_cfg = dict(by_epoch=True, max_epochs=len(values), val_interval=1)
    cfg.default_hooks = dict(
        checkpoint=dict(
            type='mmclca.LastBestCheckpointHook', save_best='top1', interval=9
        )
    )
    runner = Runner.from_cfg(cfg)
    metric = Given()
    metric.values = values
    runner.val_loop.evaluator.metrics = [metric]
    runner.train()
    (kept,) = Path(cfg.work_dir).glob('best_*.pth')
    assert kept.stem == f'best_top1_epoch_{best}'
