# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Opening of checkpoint files: what is refused, downloads, timm's names."""

import argparse
import os
import pathlib
import pickle
import struct
import threading
import time
import zipfile
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import huggingface_hub.constants
import numpy as np
import pytest
import timm
import torch
from foreign_models import config, theirs
from mmengine.config import ConfigDict
from mmengine.logging import HistoryBuffer
from mmengine.runner import Runner, load_checkpoint
from mmengine.runner.checkpoint import CheckpointLoader
from safetensors.torch import save, save_file
from torch import _weights_only_unpickler

from mmclca.checkpoints import opening
from mmclca.checkpoints.error import CheckpointError
from mmclca.registry import MODELS

open_checkpoint = CheckpointLoader.load_checkpoint


class Trap:
    """Runs a command when it is unpickled."""

    def __init__(self, command):
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


@pytest.fixture
def sprung(tmp_path):
    """A file that exists once a trap has run."""
    return tmp_path / 'sprung'


@pytest.fixture
def trap(sprung):
    return Trap(f'touch {sprung}')


PLANTED = dict(
    alone=lambda trap: trap,
    beside=lambda trap: {'model': theirs().state_dict(), 'epoch': trap},
    in_args=lambda trap: {
        'model': theirs().state_dict(),
        'args': argparse.Namespace(model=[trap]),
    },
    in_optimizer=lambda trap: {
        'state_dict': theirs().state_dict(),
        'optimizer': {'state': {0: {'step': trap}}},
    },
    in_history=lambda trap: {
        'state_dict': theirs().state_dict(),
        'message_hub': {'log_scalars': {'loss': _history(trap)}},
    },
)


def _history(trap):
    history = HistoryBuffer([1.0], [1])
    history.max_length = trap
    return history


@pytest.mark.parametrize('planted', PLANTED)
@pytest.mark.parametrize(
    'name', ['w.pth', 'w.pt', 'w.pth.tar', 'w.bin', 'w', 'old.pth']
)
def test_planted_pickle_is_refused_and_not_run(
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


def test_a_text_that_resuming_would_run_is_dropped(tmp_path):
    meta = dict(config='import os', cfg='a = 1', epoch=1)  # mmengine's keys
    path = str(tmp_path / 'w.pth')
    torch.save(dict(meta=meta, state_dict=theirs().state_dict()), path)
    assert open_checkpoint(path)['meta'] == dict(cfg='a = 1', epoch=1)


def test_planted_pickle_is_refused_where_models_are_loaded(
    trap, sprung, tmp_path
):
    path = str(tmp_path / 'w.pth')
    torch.save(PLANTED['in_args'](trap), path)
    pretrained = dict(type='Pretrained', checkpoint=path)
    runner = Runner(
        config(),
        str(tmp_path / 'work'),
        load_from=path,
        default_scope='mmpretrain',
    )
    for load in (
        partial(load_checkpoint, MODELS.build(config()), path),
        MODELS.build(dict(config(), init_cfg=pretrained)).init_weights,
        MODELS.build(
            dict(config()['backbone'], init_cfg=pretrained)
        ).init_weights,
        runner.load_or_resume,
    ):
        with pytest.raises(CheckpointError, match='not opened'):
            load()
    assert not sprung.exists()


def name_of(module, name):
    return b'c' + f'{module}\n{name}\n'.encode()


def string(text):
    return b'X' + struct.pack('<I', len(text)) + text.encode()


def pickle_through_getattr(command):
    """Reaches os.system from torch's own functions with ``getattr`` alone."""

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
    """Save a checkpoint anew with another pickle in it."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(new, 'w') as file:
        for name in old.namelist():
            data = old.read(name)
            is_pickle = name.endswith('data.pkl')
            file.writestr(name, change(data) if is_pickle else data)


def test_getattr_of_mmengines_list_is_no_way_in(sprung, tmp_path):
    empty, path = tmp_path / 'empty.pth', str(tmp_path / 'trap.pth')
    torch.save({}, empty)
    data = pickle_through_getattr(f'touch {sprung}')
    rewrite(empty, path, lambda _: data)
    with pytest.raises(CheckpointError, match='getattr'):
        open_checkpoint(path)
    assert not sprung.exists()
    # the trap is a live one
    allowed = torch.serialization.safe_globals([getattr, HistoryBuffer])
    with allowed, pytest.raises(AttributeError):
        torch.load(path, weights_only=True)
    assert sprung.exists()


@pytest.mark.parametrize('protocol', [4, 5])
def test_what_pickle_wrote_is_not_called_cut_short(protocol, tmp_path):
    path = tmp_path / 'w.pth'
    with path.open('wb') as file:
        pickle.dump({'model': torch.ones(1)}, file, protocol)
    with pytest.raises(CheckpointError, match='is not opened') as error:
        open_checkpoint(str(path))
    assert 'cut short' not in str(error.value)
    assert 'save its state dict alone' in str(error.value)


def test_what_is_no_weights_but_harmless_is_read(tmp_path):
    meta = dict(
        path=pathlib.Path('data/leaves'),
        args=argparse.Namespace(lr=1e-4, blocks=(3, 6)),
        config=ConfigDict(a=ConfigDict(b=[1])),
        score=np.float32(0.5),
        number=np.int64(3),
        names=np.array(['ash', 'elm']),
        mixed=np.array([1, None], dtype=object),
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


def test_arrays_of_numpy_1_are_read(tmp_path):
    path, old = tmp_path / 'w.pth', str(tmp_path / 'old.pth')
    torch.save({'state_dict': {}, 'meta': np.arange(3)}, path)
    rewrite(
        path, old, lambda data: data.replace(b'numpy._core', b'numpy.core')
    )
    assert open_checkpoint(old)['meta'].tolist() == [0, 1, 2]


def test_file_of_a_gpu_opens_without_one(tmp_path):
    path, new = tmp_path / 'w.pth', str(tmp_path / 'gpu.pth')
    torch.save({'a': torch.ones(1)}, path)
    rewrite(
        path, new, lambda data: data.replace(string('cpu'), string('cuda:0'))
    )
    assert open_checkpoint(new)['a'].device.type == 'cpu'


def test_list_of_safe_names_is_not_left_behind(tmp_path):
    before = set(_weights_only_unpickler._get_safe_globals())
    torch.save({}, tmp_path / 'w.pth')
    open_checkpoint(str(tmp_path / 'w.pth'))
    assert set(_weights_only_unpickler._get_safe_globals()) == before


@pytest.mark.parametrize('name', ['w.pth', 'w.safetensors'])
@pytest.mark.parametrize('share', [0, 0.01, 0.5, 0.99])
def test_truncated_file(name, share, tmp_path):
    path = tmp_path / name
    weights = theirs().state_dict()
    (save_file if 'safe' in name else torch.save)(weights, path)
    data = path.read_bytes()[: int(share * path.stat().st_size)]
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match='cut short') as error:
        open_checkpoint(str(path))
    assert f'{path} ({len(data)} bytes)' in str(error.value)


@pytest.mark.parametrize('name', ['w.pth', 'w.safetensors', 'w.bin'])
def test_text_file(name, tmp_path):
    path = tmp_path / name
    path.write_text('version https://git-lfs.github.com/spec/v1\n')
    with pytest.raises(CheckpointError, match='no checkpoint'):
        open_checkpoint(str(path))


@pytest.mark.parametrize('name', ['w.pth', 'w.safetensors', 'w'])
def test_folder_and_missing_file(name, tmp_path):
    path = tmp_path / name
    with pytest.raises(FileNotFoundError, match=f'no checkpoint {path}'):
        open_checkpoint(str(path))
    path.mkdir()
    with pytest.raises(FileNotFoundError, match='is a folder'):
        open_checkpoint(str(path))


@pytest.mark.parametrize(
    'checkpoint, what',
    [([1], 'list'), ({'model': 'vit'}, 'str'), (torch.ones(2), 'Tensor')],
)
def test_no_dict_of_tensors(checkpoint, what, tmp_path):
    path = str(tmp_path / 'w.pth')
    torch.save(checkpoint, path)
    with pytest.raises(
        CheckpointError, match=f'w.pth holds a {what} in place'
    ):
        open_checkpoint(path)


def test_weights_under_an_unknown_key(tmp_path):
    path = str(tmp_path / 'w.pth')
    torch.save({'net': theirs().state_dict(), 'epoch': 3}, path)
    with pytest.raises(CheckpointError, match='its keys are net, epoch,') as e:
        open_checkpoint(path)
    assert path in str(e.value)
    assert 'taken from state_dict, model, teacher' in str(e.value)


def test_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv('HOME', str(tmp_path))
    torch.save({'a': torch.ones(1)}, tmp_path / 'w.pth')
    assert open_checkpoint('~/w.pth')['a'] == 1


class Server(BaseHTTPRequestHandler):
    """Serves ``files``; a name with ``broken`` stops half-way."""

    files: dict = {}
    requests: list = []

    def do_GET(self):
        path = self.path.partition('?')[0]
        if path not in self.files:
            return self.send_error(404)
        data = self.files[path]
        self.requests.append(f'{self.command} {path}')
        self.send_response(200)
        self.send_header('Content-Length', str(len(data)))
        self.send_header('ETag', '"1234"')
        self.send_header('X-Repo-Commit', '0' * 40)
        self.end_headers()
        if self.command == 'GET':
            broken = 'broken' in path
            self.wfile.write(data[: len(data) // 2] if broken else data)

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *args):
        pass


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Address of a server; files and requests are those of ``Server``."""
    for name in ('http_proxy', 'HTTP_PROXY', 'all_proxy', 'ALL_PROXY'):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv('TORCH_HOME', str(tmp_path / 'cache'))
    monkeypatch.setattr(Server, 'files', {})
    monkeypatch.setattr(Server, 'requests', [])
    server = ThreadingHTTPServer(('127.0.0.1', 0), Server)
    threading.Thread(
        target=server.serve_forever, args=(0.01,), daemon=True
    ).start()
    yield f'http://127.0.0.1:{server.server_port}'
    server.shutdown()
    server.server_close()


def test_download_once(server):
    weights = theirs().state_dict()
    Server.files['/a/model.safetensors'] = save(weights)
    url = f'{server}/a/model.safetensors?download=true'
    for _ in range(2):
        model = MODELS.build(config()).double()
        load_checkpoint(model, url)
        assert torch.equal(model.backbone.cls_token, weights['cls_token'])
    assert Server.requests == ['GET /a/model.safetensors']


def test_same_name_of_two_addresses(server):
    for i in (1, 2):
        one = {'a': torch.full((1,), float(i))}
        Server.files[f'/{i}/model.safetensors'] = save(one)
    for i in (1, 2):
        assert open_checkpoint(f'{server}/{i}/model.safetensors')['a'] == i


def test_name_with_a_hash_is_kept(server, tmp_path):
    """As torch and mmengine keep it: what lies there is not fetched."""
    folder = tmp_path / 'cache' / 'hub' / 'checkpoints'
    folder.mkdir(parents=True)
    torch.save({'a': torch.ones(1)}, folder / 'vit_20220101-0123abcd.pth')
    assert open_checkpoint(f'{server}/vit_20220101-0123abcd.pth')['a'] == 1
    assert not Server.requests


def test_planted_pickle_from_a_server(server, trap, sprung, tmp_path):
    torch.save({'model': trap}, tmp_path / 'w.pth')
    Server.files['/w.pth'] = (tmp_path / 'w.pth').read_bytes()
    for _ in range(2):
        with pytest.raises(CheckpointError, match='posix.system') as error:
            open_checkpoint(f'{server}/w.pth')
    assert f'{server}/w.pth' in str(error.value)
    assert not sprung.exists()


def test_download_that_breaks_off_is_not_kept(server, tmp_path):
    data = save({'a': torch.ones(1000)})
    Server.files['/broken.safetensors'] = data
    url = f'{server}/broken.safetensors'
    with pytest.raises(CheckpointError, match='broken.safetensors') as error:
        open_checkpoint(url)
    assert 'cut short' in str(error.value)
    folder = tmp_path / 'cache' / 'hub' / 'checkpoints'
    assert not list(folder.iterdir())


def test_no_such_address(server):
    with pytest.raises(CheckpointError, match='404') as error:
        open_checkpoint(f'{server}/nothing.pth')
    assert 'give the path of the file' in str(error.value)


def test_only_the_main_process_downloads(server, monkeypatch):
    """The others wait until the file is there."""
    Server.files['/w.safetensors'] = save({'a': torch.ones(1)})
    url = f'{server}/w.safetensors'
    before = []

    def main_process():
        before.extend(Server.requests)
        with monkeypatch.context() as main:
            main.setattr(opening, 'is_main_process', lambda: True)
            main.setattr(opening, 'barrier', lambda: None)
            open_checkpoint(url)

    monkeypatch.setattr(opening, 'barrier', main_process)
    monkeypatch.setattr(opening, 'is_main_process', lambda: False)
    assert open_checkpoint(url)['a'] == 1
    assert not before and len(Server.requests) == 1


@pytest.fixture
def hub(server, tmp_path, monkeypatch):
    """The server in place of the Hugging Face hub."""
    pattern = '/{repo_id}/resolve/{revision}/{filename}'
    changes = dict(
        ENDPOINT=server,
        HUGGINGFACE_CO_URL_TEMPLATE=server + pattern,
        HF_HUB_CACHE=str(tmp_path / 'hub'),
        HF_HUB_OFFLINE=False,
    )
    for name, value in changes.items():
        monkeypatch.setattr(huggingface_hub.constants, name, value)


NAME = 'test_vit.r160_in1k'


def test_timm_name(hub):
    there = timm.create_model('test_vit').double().eval()
    for parameter in there.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    weights = {k: v.float() for k, v in there.state_dict().items()}
    Server.files[f'/timm/{NAME}/resolve/main/model.safetensors'] = save(
        weights
    )
    there.load_state_dict(weights)
    arch = dict(
        embed_dims=there.embed_dim,
        num_layers=len(there.blocks),
        num_heads=there.blocks[0].attn.num_heads,
        feedforward_channels=there.blocks[0].mlp.fc1.out_features,
    )
    head = dict(
        type='VisionTransformerClsHead',
        num_classes=1000,
        in_channels=there.embed_dim,
    )
    backbone = dict(type='mmclca.TokenReductionViT', arch=arch, img_size=160)
    here = MODELS.build(
        dict(type='ImageClassifier', backbone=backbone, head=head)
    )
    load_checkpoint(here, f'timm://{NAME}')
    here = here.double().eval()
    x = torch.randn(1, 3, 160, 160).double()
    with torch.no_grad():
        assert (here(x) - there(x)).abs().max() < 1e-9


def test_timm_name_of_another_architecture(hub):
    weights = timm.create_model('test_vit').state_dict()
    Server.files[f'/timm/{NAME}/resolve/main/model.safetensors'] = save(
        weights
    )
    with pytest.raises(CheckpointError, match=f'timm://{NAME} does not fit'):
        load_checkpoint(MODELS.build(config()), f'timm://{NAME}')


def test_timm_name_without_a_network(hub, monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, 'HF_HUB_OFFLINE', True)
    with pytest.raises(CheckpointError, match='By hand') as error:
        open_checkpoint(f'timm://{NAME}')
    assert f"create_model('{NAME}', pretrained=True)" in str(error.value)
    assert f'{NAME}.safetensors' in str(error.value)
    assert not Server.requests


@pytest.fixture
def unplug(monkeypatch):
    """Call it, and nobody answers where the hub was."""

    def unplug():
        nobody = 'http://127.0.0.1:9'
        pattern = '/{repo_id}/resolve/{revision}/{filename}'
        for name, value in (
            ('ENDPOINT', nobody),
            ('HUGGINGFACE_CO_URL_TEMPLATE', nobody + pattern),
        ):
            monkeypatch.setattr(huggingface_hub.constants, name, value)

    return unplug


def test_timm_name_without_an_answer_fails_soon(hub, unplug):
    unplug()
    start = time.monotonic()
    with pytest.raises(CheckpointError, match='By hand'):
        open_checkpoint(f'timm://{NAME}')
    assert time.monotonic() - start < 10


def test_timm_name_from_the_cache_needs_no_answer(hub, unplug):
    weights = timm.create_model('test_vit').state_dict()
    Server.files[f'/timm/{NAME}/resolve/main/model.safetensors'] = save(
        weights
    )
    open_checkpoint(f'timm://{NAME}')
    unplug()
    again = open_checkpoint(f'timm://{NAME}')
    assert torch.equal(again['cls_token'], weights['cls_token'])


@pytest.mark.parametrize(
    'name, close',
    [
        ('deit_tiny_patch16_244', 'deit_tiny_patch16_224.fb_in1k'),
        ('deit3_base_patch16_224.fb_in1', 'deit3_base_patch16_224.fb_in1k'),
        ('vit_base_patch16_224.laion2b', 'vit_base_patch16_'),
    ],
)
def test_unknown_timm_name(name, close):
    with pytest.raises(
        CheckpointError, match=f'no pretrained model {name!r}'
    ) as error:
        open_checkpoint(f'timm://{name}')
    assert close in str(error.value)


def test_timm_name_without_weights():
    with pytest.raises(
        CheckpointError, match="no pretrained model 'vit_base_patch"
    ):
        open_checkpoint('timm://vit_base_patch16_gap_224')
