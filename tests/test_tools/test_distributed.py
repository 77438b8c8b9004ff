# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Two processes on the CPU equal one process with the same batches."""

import json
import subprocess
import sys

import pytest
import torch
from mmpretrain import get_model
from tiny_run import ROOT, environment, free_port, run_tool, write_run

from mmclca.models.selfsup import SegmentedMAEViT

pytestmark = pytest.mark.slow

# a hook in each process; it stores the mean loss over all processes
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

# Adam amplifies rounding errors in gradients that are theoretically zero,
# such as the gradient of the key bias
CONFIG = """
_base_ = 'tiny.py'
optim_wrapper = dict(optimizer=dict(_delete_=True, type='SGD', lr=0.3))
custom_imports = dict(imports=['record_losses'])
custom_hooks = [dict(type='RecordLosses')]
"""
# a frozen teacher and a partly frozen student
TAUGHT = """
model = dict(
    type='mmclca.TokenReductionClassifier',
    teacher=dict(
        model='teacher.py',
        checkpoint='teacher.pth',
        loss=[
            dict(type='mmclca.DeiTDistillation', kind='soft', tau=2.0),
            dict(type='mmclca.TokenDistillation'),
        ],
    ),
)
custom_hooks += [dict(type='mmclca.TuningScopeHook', scope='attn')]
"""
# equal masks for any number of processes
PRETRAINED = """
custom_imports = dict(imports=['record_losses', 'same_masks'])
train_dataloader = dict(collate_fn=dict(type='default_collate'))
model = dict(
    _delete_=True,
    type='mmclca.MIRL',
    data_preprocessor=dict(
        type='SelfSupDataPreprocessor', mean=[127.5] * 3, std=[127.5] * 3
    ),
    backbone=dict(
        type='mmclca.SegmentedMAEViT',
        arch=dict(
            embed_dims=24,
            num_layers=4,
            num_heads=2,
            feedforward_channels=48,
        ),
        img_size=32,
        patch_size=8,
        num_segments=4,
    ),
    neck=dict(
        type='mmclca.MIRLDecoders',
        decoder_embed_dims=12,
        decoder_depth=1,
        decoder_num_heads=2,
    ),
    head=dict(type='mmclca.MIRLHead'),
)
"""
MASKS = """
import torch
from mmclca.models.selfsup import SegmentedMAEViT

def draw_shuffle(self, x):
    order = torch.arange(self.num_patches, device=x.device)
    return order.flip(0).expand(len(x), -1)

SegmentedMAEViT.draw_shuffle = draw_shuffle
"""
TEACHER = """
_base_ = 'tiny.py'
model = dict(backbone=dict(reducer=None, cache=None, reduce_at=()))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Current folder with the tiny config and the hook."""
    write_run(tmp_path)
    (tmp_path / 'record_losses.py').write_text(HOOK)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('LOCAL_RANK', '0')
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop('record_losses', None)


def launch(folder, name, processes, files, *options):
    """Run a tool in this process, or in several with the launcher."""
    if processes == 1:
        with pytest.MonkeyPatch.context() as patch:
            run_tool(patch, ROOT / f'tools/{name}.py', *files, *options)
        return
    words = (*files, processes, *options)
    subprocess.run(
        [ROOT / f'tools/dist_{name}.sh', *map(str, words)],
        cwd=folder,
        env=environment(folder, PYTHON=sys.executable, PORT=str(free_port())),
        check=True,
    )


def train(folder, processes, batch_size):
    """Return the losses of all iterations and the last checkpoint."""
    work = folder / f'work{processes}'
    batches = ('--cfg-options', f'train_dataloader.batch_size={batch_size}')
    options = ('--no-validate', '--work-dir', work, *batches)
    launch(folder, 'train', processes, ['recorded.py'], *options)
    record = json.loads((work / 'losses.json').read_text())
    assert record['world'] == processes
    return torch.tensor(record['losses']), work / 'epoch_2.pth'


def evaluate(folder, processes, checkpoint):
    """Return the metrics of a checkpoint."""
    out = folder / f'metrics{processes}.json'
    options = ('--out', out, '--out-item', 'metrics')
    launch(folder, 'test', processes, ['tiny.py', checkpoint], *options)
    return json.loads(out.read_text())


def test_two_processes_equal_one_in_losses_and_metrics(folder):
    (folder / 'teacher.py').write_text(TEACHER)
    teacher = get_model(str(folder / 'teacher.py'))
    torch.save(teacher.state_dict(), folder / 'teacher.pth')
    (folder / 'recorded.py').write_text(CONFIG + TAUGHT)
    checkpoints = learn_alike(folder)
    assert evaluate(folder, 2, checkpoints[1]) == evaluate(
        folder, 1, checkpoints[0]
    )


def learn_alike(folder):
    """Compare losses and weights; return both checkpoints."""
    losses, checkpoint = train(folder, processes=1, batch_size=8)
    both_losses, both = train(folder, processes=2, batch_size=4)
    assert len(losses) == 4  # two epochs of 16 images
    assert losses.unique().numel() == 4
    torch.testing.assert_close(both_losses, losses, rtol=1e-5, atol=0)
    torch.testing.assert_close(
        torch.load(both, weights_only=False)['state_dict'],
        torch.load(checkpoint, weights_only=False)['state_dict'],
        rtol=1e-5,
        atol=1e-6,
    )
    return checkpoint, both


def test_pretraining_in_two_processes_equals_one(folder, monkeypatch):
    (folder / 'recorded.py').write_text(CONFIG + PRETRAINED)
    (folder / 'same_masks.py').write_text(MASKS)
    draw = SegmentedMAEViT.draw_shuffle
    monkeypatch.setattr(
        SegmentedMAEViT, 'draw_shuffle', draw
    )  # restored after the test
    learn_alike(folder)
    sys.modules.pop('same_masks', None)
