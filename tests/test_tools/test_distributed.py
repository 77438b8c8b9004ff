# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Two processes on the CPU learn what one does with the same batches."""

import json
import socket
import subprocess
import sys

import pytest
import torch
from tiny_run import ROOT, environment, write_run

pytestmark = [pytest.mark.slow, pytest.mark.first]

# Runs in the processes; a loss is the mean over all of them.
HOOK = """
import json
from pathlib import Path
import mmengine.dist as dist
from mmengine.hooks import Hook
from mmengine.registry import HOOKS

@HOOKS.register_module()
class RecordLosses(Hook):
    losses = []

    def after_train_iter(self, runner, batch_idx, data_batch, outputs):
        loss = outputs['loss'].detach().clone()
        dist.all_reduce(loss, 'mean')
        self.losses.append(loss.item())

    def after_train(self, runner):
        record = dict(losses=self.losses, world=dist.get_world_size())
        if dist.is_main_process():
            path = Path(runner.work_dir) / 'losses.json'
            path.write_text(json.dumps(record))
"""

# Adam would blow up the rounding in gradients that are zero by nature, as
# those of the keys' bias.
CONFIG = """
_base_ = 'tiny.py'
optim_wrapper = dict(optimizer=dict(_delete_=True, type='SGD', lr=0.3))
custom_imports = dict(imports=['record_losses'])
custom_hooks = [dict(type='RecordLosses')]
"""


def free_port():
    with socket.socket() as sock:
        sock.bind(('127.0.0.1', 0))
        return sock.getsockname()[1]


def launch(folder, script, *arguments):
    """Run one of the launchers in ``folder``."""
    subprocess.run(
        [ROOT / 'tools' / script, *map(str, arguments)],
        cwd=folder,
        env=environment(folder, PYTHON=sys.executable, PORT=str(free_port())),
        check=True,
    )


def train(folder, processes, batch_size):
    """Losses of all iterations and the path of the final weights."""
    work = folder / f'work{processes}'
    batches = ['--cfg-options', f'train_dataloader.batch_size={batch_size}']
    options = ['--no-validate', '--work-dir', work, *batches]
    launch(folder, 'dist_train.sh', 'recorded.py', processes, *options)
    record = json.loads((work / 'losses.json').read_text())
    assert record['world'] == processes
    return torch.tensor(record['losses']), work / 'epoch_2.pth'


def evaluate(folder, processes, checkpoint):
    """Metrics of a checkpoint."""
    out = folder / f'metrics{processes}.json'
    run = ['tiny.py', checkpoint, processes, '--out', out]
    launch(folder, 'dist_test.sh', *run, '--out-item', 'metrics')
    return json.loads(out.read_text())


def test_two_processes_give_the_losses_and_metrics_of_one(tmp_path):
    write_run(tmp_path)
    (tmp_path / 'recorded.py').write_text(CONFIG)
    (tmp_path / 'record_losses.py').write_text(HOOK)
    losses, checkpoint = train(tmp_path, processes=1, batch_size=8)
    both_losses, both = train(tmp_path, processes=2, batch_size=4)
    assert len(losses) == 4  # two epochs of 16 images
    assert losses.unique().numel() == 4
    torch.testing.assert_close(both_losses, losses, rtol=1e-5, atol=0)
    torch.testing.assert_close(
        torch.load(both, weights_only=False)['state_dict'],
        torch.load(checkpoint, weights_only=False)['state_dict'],
        rtol=1e-5,
        atol=1e-6,
    )
    assert evaluate(tmp_path, 2, both) == evaluate(tmp_path, 1, checkpoint)
