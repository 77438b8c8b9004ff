# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Download checkpoints by URL and timm name."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import timm
import torch
from foreign_models import config, theirs
from huggingface_hub import _snapshot_download, constants, file_download, utils
from safetensors.torch import save

from mmclca.checkpoints import downloading
from mmclca.checkpoints.error import CheckpointError
from mmclca.checkpoints.load import load
from mmclca.checkpoints.opening import open_checkpoint
from mmclca.registry import MODELS


class Server(BaseHTTPRequestHandler):
    """Server for ``files``; names with ``broken`` stop halfway."""

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
    """URL of a running ``Server``."""
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


@pytest.fixture
def cached(tmp_path):
    """Folder of downloads."""
    return tmp_path / 'cache' / 'hub' / 'checkpoints'


def test_url_is_downloaded_once(server):
    weights = theirs().state_dict()
    Server.files['/a/model.safetensors'] = save(weights)
    url = f'{server}/a/model.safetensors?download=true'
    for _ in range(2):
        model = MODELS.build(config()).double()
        load(model, url, strict=False)
        assert torch.equal(model.backbone.cls_token, weights['cls_token'])
    assert Server.requests == ['GET /a/model.safetensors']


def test_downloads_are_separate_if_names_are_equal(server):
    urls = [f'{server}/{i}/model.safetensors' for i in (1, 2)]
    for i in (1, 2):
        one = {'a': torch.full((1,), float(i))}
        Server.files[f'/{i}/model.safetensors'] = save(one)
    assert [open_checkpoint(url).weights['a'] for url in urls] == [1, 2]


def test_cached_file_is_used_if_name_has_a_hash(server, cached):
    """torch and mmengine use the same cache."""
    cached.mkdir(parents=True)
    torch.save({'a': torch.ones(1)}, cached / 'vit_20220101-0123abcd.pth')
    assert (
        open_checkpoint(f'{server}/vit_20220101-0123abcd.pth').weights['a']
        == 1
    )
    assert not Server.requests


def test_downloaded_code_is_refused(server, trap, sprung, tmp_path):
    torch.save({'model': trap}, tmp_path / 'w.pth')
    Server.files['/w.pth'] = (tmp_path / 'w.pth').read_bytes()
    for _ in range(2):
        with pytest.raises(CheckpointError, match='posix.system') as error:
            open_checkpoint(f'{server}/w.pth')
    assert f'{server}/w.pth' in str(error.value)
    assert not sprung.exists()


@pytest.mark.parametrize(
    'name, terms',
    [
        ('broken.safetensors', ('broken.safetensors', 'incomplete')),
        ('nothing.pth', ('404', 'browser')),
    ],
)
def test_nothing_is_cached_if_the_download_fails(server, cached, name, terms):
    Server.files['/broken.safetensors'] = save({'a': torch.ones(1000)})
    with pytest.raises(CheckpointError) as error:
        open_checkpoint(f'{server}/{name}')
    assert all(term in str(error.value) for term in terms)
    assert not list(cached.iterdir())


def test_only_the_main_process_downloads(server, monkeypatch):
    """Other processes wait for the file."""
    Server.files['/w.safetensors'] = save({'a': torch.ones(1)})
    url = f'{server}/w.safetensors'
    before = []

    def main_process():
        before.extend(Server.requests)
        with monkeypatch.context() as main:
            main.setattr(downloading, 'is_main_process', lambda: True)
            main.setattr(downloading, 'barrier', lambda: None)
            open_checkpoint(url)

    monkeypatch.setattr(downloading, 'barrier', main_process)
    monkeypatch.setattr(downloading, 'is_main_process', lambda: False)
    assert open_checkpoint(url).weights['a'] == 1
    assert not before and len(Server.requests) == 1


NAME = 'test_vit.r160_in1k'


@pytest.fixture
def connect(server, tmp_path, monkeypatch):
    """Function to use an address, or the server, as Hugging Face hub."""
    pattern = '/{repo_id}/resolve/{revision}/{filename}'

    def connect(address=server, offline=False):
        for name, value in dict(
            ENDPOINT=address,
            HUGGINGFACE_CO_URL_TEMPLATE=address + pattern,
            HF_HUB_CACHE=str(tmp_path / 'hub'),
            HF_HUB_OFFLINE=offline,
        ).items():
            # early versions import the values into other modules
            for module in (constants, file_download, _snapshot_download):
                monkeypatch.setattr(module, name, value, raising=False)
        forget_offline()

    yield connect
    forget_offline()


def forget_offline():
    """Close the session, which early versions keep offline."""
    if hasattr(utils, 'reset_sessions'):
        utils.reset_sessions()


NOBODY = 'http://127.0.0.1:9'
NEEDS_HUB = pytest.mark.skipif(
    not downloading.has_hf_hub(),
    reason='timm is too old for this huggingface_hub',
)


def test_timm_is_refused_if_too_old_for_the_hub(monkeypatch):
    monkeypatch.setattr(downloading, 'has_hf_hub', lambda: False)
    message = 'timm .* huggingface_hub .*: pip install --upgrade timm'
    with pytest.raises(CheckpointError, match=message):
        open_checkpoint(f'timm://{NAME}')


@NEEDS_HUB
@pytest.mark.parametrize('offline', [True, False])
def test_timm_fails_at_once_without_network(connect, offline):
    connect(NOBODY, offline)
    with pytest.raises(CheckpointError, match='copy .* here') as error:
        open_checkpoint(f'timm://{NAME}')
    assert f"create_model('{NAME}', pretrained=True)" in str(error.value)
    assert f'{NAME}.safetensors' in str(error.value)
    assert not Server.requests


@NEEDS_HUB
def test_timm_works_offline_if_cached(connect):
    connect()
    weights = timm.create_model('test_vit').state_dict()
    file = f'/timm/{NAME}/resolve/main/model.safetensors'
    Server.files[file] = save(weights)
    open_checkpoint(f'timm://{NAME}')
    connect(NOBODY)
    again = open_checkpoint(f'timm://{NAME}')
    assert torch.equal(again.weights['cls_token'], weights['cls_token'])


@pytest.mark.parametrize(
    'name, close',
    [
        ('deit_tiny_patch16_244', 'deit_tiny_patch16_224.fb_in1k'),
        ('vit_base_patch16_gap_224', 'vit_base_patch16_'),  # without weights
    ],
)
def test_timm_suggests_names_if_unknown(name, close):
    with pytest.raises(CheckpointError, match=f'{name!r}.*{close}'):
        open_checkpoint(f'timm://{name}')
