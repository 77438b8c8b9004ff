# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
import torch
from mmengine.config import Config
from tiny_model import write_tiny
from tiny_run import CLASSES

from mmclca.apis import TokenReductionInferencer
from mmclca.apis.stored import stored_classes, stored_config
from mmclca.utils.checkpoint_error import CheckpointError


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp('stored')
    write_tiny(folder)
    return folder


@pytest.mark.parametrize('name', ['tiny.pth', 'tiny.safetensors'])
def test_config_and_classes_out_of_a_file(folder, name):
    checkpoint = str(folder / name)
    config = Config.fromfile(folder / 'tiny.py')
    read = stored_config(checkpoint).to_dict()
    assert {'model', 'val_dataloader', 'test_dataloader'} <= {*read}
    assert 'optim_wrapper' not in read
    assert read.items() <= config.to_dict().items()
    loaded = torch.load(folder / 'tiny.pth', weights_only=True)
    assert tuple(stored_classes(checkpoint, loaded)) == CLASSES


def test_bare_weights_hold_no_config(folder, tmp_path):
    bare = tmp_path / 'bare.pth'
    weights = torch.load(folder / 'tiny.pth', weights_only=True)['state_dict']
    torch.save(weights, bare)
    with pytest.raises(ValueError, match='bare.pth holds no config: give'):
        stored_config(str(bare))
    assert stored_classes(str(bare), weights) is None
    config = str(folder / 'tiny.py')
    assert TokenReductionInferencer(config, bare).classes == list('0123')


def test_config_that_would_run_code_is_not_used(folder, tmp_path):
    loaded = torch.load(folder / 'tiny.pth', weights_only=True)
    ran = tmp_path / 'ran'
    call = f"type='os.mkdir', path={str(ran)!r}"
    for text, message in (
        (f'import os\nos.mkdir({str(ran)!r})', 'line 1, import os, is no'),
        (f"model = __import__('os').mkdir({str(ran)!r})", 'is no plain'),
        (f'model = dict({call})', 'unknown type os.mkdir'),
        (f'test_dataloader = dict(pipeline=[dict({call})])', 'unknown type'),
        (f'val_dataloader = dict(dataset=dict({call}))', 'unknown type'),
        (f'model = [dict(inner=({{"a": dict({call})}},))]', 'unknown type'),
        (
            "train_dataloader = dict(ann_file='http://b/x.PKL')",
            'the file http',
        ),
        ("test_dataloader = dict(ann_file='x.yml')", 'the file x.yml'),
        ('model = dict(trust_remote_code=True)', 'trust_remote_code'),
    ):
        loaded['meta']['cfg'] = text
        torch.save(loaded, tmp_path / 'evil.pth')
        with pytest.raises(ValueError, match=message) as error:
            TokenReductionInferencer(tmp_path / 'evil.pth')
        assert 'is not used' in str(error.value)
        assert '--config CONFIG' in str(error.value)
        assert not ran.exists()


def test_files_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError, match='there is no checkpoint'):
        stored_config(str(tmp_path / 'gone.safetensors'))
    with pytest.raises(FileNotFoundError, match='there is no checkpoint'):
        stored_config(str(tmp_path / 'gone.pth'))
    (tmp_path / 'text.safetensors').write_text('no weights')
    with pytest.raises(CheckpointError, match='text.safetensors cannot be op'):
        stored_config(str(tmp_path / 'text.safetensors'))
