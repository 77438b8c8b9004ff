# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Open checkpoint files, and refuse unsafe ones."""

import argparse
import pathlib
import pickle
import struct
import zipfile
from functools import partial

import numpy as np
import pytest
import torch
from foreign_models import config, theirs
from mmengine.config import Config, ConfigDict
from mmengine.logging import HistoryBuffer
from mmengine.runner import CheckpointLoader
from safetensors.torch import save_file
from torch import _weights_only_unpickler

from mmclca.apis.loading import build_classifier
from mmclca.checkpoints.error import CheckpointError
from mmclca.checkpoints.load import load
from mmclca.checkpoints.opening import open_checkpoint
from mmclca.engine.runner import SafeRunner
from mmclca.registry import MODELS


def planted_in(part):
    return lambda trap: {'model': theirs().state_dict(), **part(trap)}


PLANTED = dict(
    alone=lambda trap: trap,
    beside=planted_in(lambda trap: dict(epoch=trap)),
    in_args=planted_in(lambda x: dict(args=argparse.Namespace(model=[x]))),
    in_optimizer=planted_in(lambda x: dict(optimizer={0: {'step': x}})),
    in_history=planted_in(lambda x: dict(log_scalars=_history(x))),
)


def _history(trap):
    history = HistoryBuffer([1.0], [1])
    history.max_length = trap
    return history


@pytest.mark.parametrize('planted', PLANTED)
@pytest.mark.parametrize('name', ['w.pth', 'w', 'old.pth'])
def test_planted_code_is_refused_and_not_run(
    planted, name, trap, sprung, tmp_path
):
    path = tmp_path / name
    zipped = name != 'old.pth'
    checkpoint = PLANTED[planted](trap)
    torch.save(checkpoint, path, _use_new_zipfile_serialization=zipped)
    with pytest.raises(CheckpointError, match='posix.system') as error:
        open_checkpoint(str(path))
    assert str(path) in str(error.value)
    assert 'weights_only' not in str(error.value)
    assert not sprung.exists()


def test_planted_code_is_refused_if_the_scheme_is_unknown(
    trap, sprung, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    pathlib.Path('leaf:').mkdir()  # leaf://w.pth is a path, too
    torch.save(PLANTED['in_args'](trap), 'leaf:/w.pth')
    with pytest.raises(CheckpointError, match='posix.system'):
        open_checkpoint('leaf://w.pth')
    assert not sprung.exists()
    with pytest.raises(FileNotFoundError, match='leaf://other.pth'):
        open_checkpoint('leaf://other.pth')


def test_executable_config_is_dropped(tmp_path):
    meta = dict(config='import os', cfg='a = 1', epoch=1)  # keys of mmengine
    path = str(tmp_path / 'w.pth')
    torch.save(dict(meta=meta, state_dict=theirs().state_dict()), path)
    assert open_checkpoint(path)['meta'] == dict(cfg='a = 1', epoch=1)


@pytest.mark.parametrize('loader', ['load', 'load_from', 'init_cfg'])
def test_planted_code_is_refused_by_all_loaders(
    loader, trap, sprung, tmp_path
):
    path = str(tmp_path / 'w.pth')
    torch.save(PLANTED['in_args'](trap), path)
    pretrained = dict(type='Pretrained', checkpoint=path)
    backbone = dict(config()['backbone'], init_cfg=pretrained)
    plain = dict(type='ImageClassifier', backbone=dict(type='LeNet5'))
    runner = partial(
        SafeRunner,
        work_dir=str(tmp_path / 'work'),
        load_from=path,
        default_scope='mmpretrain',
    )
    init = dict(init_cfg=pretrained)
    attempts = dict(
        load=[partial(load, MODELS.build(config()), path)],
        load_from=[runner(config()).load_or_resume],
        init_cfg=[
            MODELS.build(dict(config(), **init)).init_weights,
            MODELS.build(dict(config(), pretrained=path)).init_weights,
            MODELS.build(dict(config(), backbone=backbone)).init_weights,
            runner(dict(plain, **init)).model.init_weights,
            build_classifier(Config(dict(model=plain | init))).init_weights,
        ],
    )
    for attempt in attempts[loader]:
        with pytest.raises(CheckpointError, match='is refused'):
            attempt()
    assert not sprung.exists()


def name_of(module, name):
    return b'c' + f'{module}\n{name}\n'.encode()


def string(text):
    return b'X' + struct.pack('<I', len(text)) + text.encode()


def pickle_through_getattr(command):
    """Pickle that reaches os.system from torch with ``getattr``."""

    def attribute(owner, name):
        return name_of('builtins', 'getattr') + owner + string(name) + b'\x86R'

    function = name_of('torch.serialization', '_get_layout')
    history = name_of('mmengine.logging.history_buffer', 'HistoryBuffer')
    settings = attribute(function, '__globals__')
    module = attribute(history + b')\x81' + settings + b'b', 'os')
    call = name_of('torch._tensor', '_rebuild_from_type_v2')
    command = name_of('builtins', 'set') + string(command) + b'\x85N'
    system = attribute(module, 'system')
    return b'\x80\x02' + call + b'(' + system + command + b'tR.'


def rewrite(path, new, change):
    """Copy a checkpoint with another pickle."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(new, 'w') as file:
        for name in old.namelist():
            data = old.read(name)
            is_pickle = name.endswith('data.pkl')
            file.writestr(name, change(data) if is_pickle else data)


def test_getattr_is_refused(sprung, tmp_path):
    empty, path = tmp_path / 'empty.pth', str(tmp_path / 'trap.pth')
    torch.save({}, empty)
    data = pickle_through_getattr(f'touch {sprung}')
    rewrite(empty, path, lambda _: data)
    with pytest.raises(CheckpointError, match='getattr'):
        open_checkpoint(path)
    assert not sprung.exists()
    # the trap works without the check
    torch.serialization.add_safe_globals([getattr, set, HistoryBuffer])
    try:
        with pytest.raises(AttributeError):
            torch.load(path, weights_only=True)
    finally:
        torch.serialization.clear_safe_globals()
    assert sprung.exists()


@pytest.mark.parametrize('protocol', [4, 5])
def test_file_of_pickle_dump_is_not_called_incomplete(protocol, tmp_path):
    path = tmp_path / 'w.pth'
    with path.open('wb') as file:
        pickle.dump({'model': torch.ones(1)}, file, protocol)
    with pytest.raises(CheckpointError, match='is refused') as error:
        open_checkpoint(str(path))
    assert 'incomplete' not in str(error.value)
    assert 'state dict' in str(error.value)


def test_harmless_metadata_is_loaded(tmp_path):
    meta = dict(
        path=pathlib.Path('data/leaves'),
        args=argparse.Namespace(lr=1e-4, blocks=(3, 6)),
        config=ConfigDict(a=ConfigDict(b=[1])),
        score=np.float32(0.5),
        number=np.int64(3),
        names=np.array(['ash', 'elm']),
        history=HistoryBuffer([1.0, 2.0], [1, 1]),
    )
    path = str(tmp_path / 'w.pth')
    torch.save({'state_dict': {}, 'meta': meta}, path)
    read = open_checkpoint(path)['meta']
    assert str(read['path']) == 'data/leaves'
    assert read['history'].mean() == 1.5
    assert read['names'].tolist() == ['ash', 'elm']
    for name in ('args', 'config', 'score', 'number'):
        assert read[name] == meta[name]
        assert type(read[name]) is type(meta[name])


def allowed_names():
    """Return the names allowed in pickles by torch, with their meaning."""
    return (
        _weights_only_unpickler._get_allowed_globals()
        | _weights_only_unpickler._get_user_allowed_globals()
    )


def test_arrays_are_loaded_if_saved_by_numpy_1(tmp_path):
    before = allowed_names()
    path, old = tmp_path / 'w.pth', str(tmp_path / 'old.pth')
    torch.save({'state_dict': {}, 'meta': np.arange(3)}, path)
    rewrite(
        path, old, lambda data: data.replace(b'numpy._core', b'numpy.core')
    )
    assert open_checkpoint(old)['meta'].tolist() == [0, 1, 2]
    assert allowed_names() == before


def test_gpu_checkpoint_opens_on_the_cpu(tmp_path):
    path, new = tmp_path / 'w.pth', str(tmp_path / 'gpu.pth')
    torch.save({'a': torch.ones(1)}, path)
    rewrite(
        path, new, lambda data: data.replace(string('cpu'), string('cuda:0'))
    )
    assert open_checkpoint(new).weights['a'].device.type == 'cpu'


@pytest.mark.parametrize('name', ['w.pth', 'w.safetensors'])
@pytest.mark.parametrize('share', [0.01, 0.5, 0.99])
def test_file_is_refused_if_truncated(name, share, tmp_path):
    path = tmp_path / name
    weights = theirs().state_dict()
    (save_file if 'safe' in name else torch.save)(weights, path)
    data = path.read_bytes()[: int(share * path.stat().st_size)]
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match='incomplete') as error:
        open_checkpoint(str(path))
    assert f'{path} ({len(data)} bytes)' in str(error.value)


@pytest.mark.parametrize('name', ['w.pth', 'w'])
def test_path_is_refused_if_missing_or_folder(name, tmp_path):
    path = tmp_path / name
    with pytest.raises(FileNotFoundError, match=f'{path} does not exist'):
        open_checkpoint(str(path))
    path.mkdir()
    with pytest.raises(FileNotFoundError, match='model.pth'):
        open_checkpoint(str(path))


@pytest.mark.parametrize(
    'checkpoint, said',
    [
        ([1], 'a list instead'),
        ({'model': 'vit'}, 'a str instead'),
        (torch.ones(2), 'a Tensor instead'),
        ({'loss': {'a': torch.ones(1)}}, 'loss;'),
    ],
)
def test_checkpoint_is_refused_without_dict_of_tensors(
    checkpoint, said, tmp_path
):
    path = str(tmp_path / 'w.pth')
    torch.save(checkpoint, path)
    with pytest.raises(CheckpointError, match=f'w.pth.* {said}'):
        open_checkpoint(path)


def test_home_folder_is_expanded(tmp_path, monkeypatch):
    monkeypatch.setenv('HOME', str(tmp_path))
    torch.save({'a': torch.ones(1)}, tmp_path / 'w.pth')
    assert open_checkpoint('~/w.pth').weights['a'] == 1


def test_other_schemes_open_on_the_cpu_by_default(monkeypatch):
    def load_from_store(name, map_location):
        return dict(state_dict={}, place=map_location)

    schemes = {'store://': load_from_store, **CheckpointLoader._schemes}
    monkeypatch.setattr(CheckpointLoader, '_schemes', schemes)
    assert open_checkpoint('store://w.pth')['place'] == 'cpu'
    assert open_checkpoint('store://w.pth', 'meta')['place'] == 'meta'
