# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Logged values in checkpoints: plain lists, resumed as histories."""

import pickletools
import zipfile
from uuid import uuid4

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.logging import HistoryBuffer
from mmengine.model import BaseModel
from mmengine.registry import MODELS
from mmengine.runner import Runner
from torch import nn

from mmclca.checkpoints.error import CheckpointError
from mmclca.engine.histories import restore_histories, store_histories
from mmclca.engine.runner import build_runner

NAMES = ('train/loss', 'train/lr', 'train/time')


@MODELS.register_module()
class OneLayer(BaseModel):
    """Model with one layer, for training."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, inputs, mode):
        return dict(loss=self.fc(inputs).square().mean())


@pytest.fixture
def train(tmp_path):
    """Train to a number of epochs; return the runner."""

    def train(epochs, resume_from=None, build=build_runner):
        cfg = Config(
            dict(
                model=dict(type='OneLayer'),
                work_dir=str(tmp_path / 'work'),
                experiment_name=uuid4().hex,  # key of the message hub
                train_dataloader=dict(
                    dataset=[dict(inputs=torch.ones(4))] * 6,
                    sampler=dict(type='DefaultSampler', shuffle=False),
                    batch_size=2,
                    collate_fn=dict(type='default_collate'),
                ),
                train_cfg=dict(by_epoch=True, max_epochs=epochs),
                optim_wrapper=dict(optimizer=dict(type='Adam', lr=0.1)),
                param_scheduler=dict(type='CosineAnnealingLR', T_max=3),
                randomness=dict(seed=0),
                resume=resume_from is not None,
                load_from=resume_from and str(resume_from),
                log_level='ERROR',
            )
        )
        runner = build(cfg)
        runner.train()
        return runner

    return train


def read_histories(runner):
    """Return losses and learning rates with their counts."""
    return [
        runner.message_hub.get_scalar(name).data[part].tolist()
        for name in NAMES[:2]
        for part in (0, 1)
    ]


def test_checkpoint_is_read_without_numpy(train, tmp_path):
    train(1)
    path = tmp_path / 'work/epoch_1.pth'
    with zipfile.ZipFile(path) as archive:
        (name,) = (x for x in archive.namelist() if x.endswith('data.pkl'))
        pickle = archive.read(name)
    texts = [text for _, text, _ in pickletools.genops(pickle)]
    foreign = ('numpy', 'mmengine.', 'mmclca.')
    assert not [x for x in texts if str(x).startswith(foreign)]
    checkpoint = torch.load(path, weights_only=True)
    assert {*NAMES} <= {*checkpoint['histories']}
    loss = checkpoint['histories']['train/loss']
    assert len(loss['values']) == len(loss['counts']) == 3


def test_resumed_run_has_all_logged_values(train, tmp_path):
    whole = train(3)
    for number in (1, 2):
        checkpoint = tmp_path / f'work/epoch_{number}.pth'
        resumed = train(3, checkpoint)
        assert read_histories(resumed) == read_histories(whole)
    stored = torch.load(checkpoint, weights_only=True)['histories']
    losses, counts, *_ = read_histories(whole)
    assert stored['train/loss']['values'] == losses[:6]
    assert stored['train/loss']['counts'] == counts[:6]


def test_earlier_checkpoint_is_resumed(train, tmp_path):
    whole = train(3)
    checkpoint = torch.load(tmp_path / 'work/epoch_1.pth')
    restore_histories(checkpoint)  # as mmengine stores them
    hub = checkpoint['message_hub']
    assert isinstance(hub['log_scalars']['train/loss'], HistoryBuffer)
    assert hub['resumed_keys']['train/loss']
    path = tmp_path / 'earlier.pth'
    torch.save(checkpoint, path)
    assert read_histories(train(3, path)) == read_histories(whole)


def test_plain_runner_resumes_checkpoint(train, tmp_path, capfd):
    whole = train(3).model.state_dict()
    path = tmp_path / 'work/epoch_1.pth'
    capfd.readouterr()
    plain = train(3, path, Runner.from_cfg)
    assert plain.iter == 9
    assert 'just skip resuming' not in ''.join(capfd.readouterr())
    for name, weight in plain.model.state_dict().items():
        assert torch.equal(weight, whole[name])


def test_numpy_values_become_plain():
    info = dict(best=np.float64(0.1), shape=np.array([1, 2]))
    hub = dict(log_scalars={}, runtime_info=info, resumed_keys=dict(best=True))
    checkpoint = dict(meta={}, state_dict={}, message_hub=hub)
    store_histories(checkpoint)
    stored = checkpoint['message_hub']['runtime_info']
    assert stored == dict(best=0.1, shape=[1, 2])
    assert type(stored['best']) is float
    assert isinstance(info['best'], np.float64)


@pytest.mark.parametrize(
    'histories',
    [
        [1],
        dict(loss=1),
        dict(loss=dict(values=[1], counts=[1])),
        dict(loss=dict(values=[1], counts=[1, 1], max_length=9)),
        dict(loss=dict(values=['x'], counts=[1], max_length=9)),
        dict(loss=dict(values=[1], counts=[1], max_length='x')),
        dict(loss=dict(values=[10**400], counts=[1], max_length=9)),
        dict(loss=dict(values=[[1], 2], counts=[1, 1], max_length=9)),
    ],
)
def test_damaged_histories_are_refused(histories):
    hub = dict(log_scalars={}, runtime_info={}, resumed_keys={})
    checkpoint = dict(histories=histories, message_hub=hub)
    with pytest.raises(CheckpointError, match='logged values'):
        restore_histories(checkpoint)
