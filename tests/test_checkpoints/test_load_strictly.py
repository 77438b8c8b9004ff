# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
import torch
from torch import nn

from mmclca.checkpoints.error import CheckpointError
from mmclca.checkpoints.load import load


def model():
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))


BROKEN = {
    'missing': ('1.weight', lambda x: None),
    'another shape': ('1.weight', lambda x: torch.ones(5)),
    'nan': ('1.weight', lambda x: x * torch.nan),
    'infinite': ('1.weight', lambda x: x / 0),
    'nan buffer': ('1.running_mean', lambda x: x * torch.nan),
    'infinite buffer': ('1.running_var', lambda x: x / 0),
    'negative variance': ('1.running_var', lambda x: -x),
    'integers': ('1.weight', lambda x: x.int()),
    'complex': ('1.weight', lambda x: x * 1j),
    'complex buffer': ('1.running_mean', lambda x: x * 1j),
    'sparse': ('1.weight', lambda x: x.to_sparse()),
    'quantized': (
        '1.weight',
        lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),
    ),
}


@pytest.mark.parametrize('broken', BROKEN)
def test_load_refuses_broken_weights_if_strict(tmp_path, broken):
    here, weights = model(), model().state_dict()
    name, change = BROKEN[broken]
    weights['1.running_mean'] += 7
    weights[name] = change(weights[name])
    torch.save(weights, tmp_path / 'weights.pth')
    before = {k: v.clone() for k, v in here.state_dict().items()}
    with pytest.raises((CheckpointError, ValueError), match=name) as error:
        load(here, str(tmp_path / 'weights.pth'))
    assert 'weights.pth' in str(error.value)
    for key, tensor in here.state_dict().items():
        assert torch.equal(tensor, before[key]), key


def test_load_fills_all_parameters(tmp_path):
    here, there = model(), model()
    torch.save(there.state_dict(), tmp_path / 'weights.pth')
    before = [parameter.data_ptr() for parameter in here.parameters()]
    report = load(here, str(tmp_path / 'weights.pth'))
    assert report.loaded == [*there.state_dict()]
    assert before == [parameter.data_ptr() for parameter in here.parameters()]
    for name, tensor in here.state_dict().items():
        assert torch.equal(tensor, there.state_dict()[name]), name
