# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Limits of the server, and its folder of uploads."""

import os
import tempfile
import time
from types import SimpleNamespace
from urllib.request import urlopen

import pytest

pytest.importorskip('gradio', reason='the page needs gradio: extra demo')

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from mmclca.cli.commands.page import local_address
from mmclca.page import limits, server
from mmclca.page.identify import IdentifyTab

UPLOAD = '/gradio_api/upload'


async def answer(request):
    return PlainTextResponse(str(len(await request.body())))


async def fail(request):
    raise KeyError('a secret')


@pytest.fixture
def client(tmp_path, monkeypatch):
    """Client of an application with uploads of at most 3 MB."""
    monkeypatch.setattr(server, 'MEGABYTES', 1)
    bounded = Middleware(server.Guard, folder=tmp_path, megabytes=2)
    routes = [Route(path, answer, methods=['POST']) for path in (UPLOAD, '/')]
    routes.append(Route('/fails', fail))
    return TestClient(Starlette(routes=routes, middleware=[bounded]))


def test_page_refuses_a_request_if_it_is_too_large(client):
    for path, most in ((UPLOAD, 3 * 2**20), ('/', 2**21)):
        assert client.post(path, content=bytes(most)).text == str(most)
        assert client.post(path, content=bytes(most + 1)).status_code == 413
    chunks = client.post(UPLOAD, content=iter([b'of unknown length']))
    assert chunks.status_code == 413 and '2 MB' in chunks.json()['detail']


@pytest.mark.parametrize(
    'limit',
    [dict(MAX_MEGABYTES=0.001), dict(MAX_FILES=1), dict(FREE_MEGABYTES=1e9)],
)
def test_page_refuses_uploads_if_many_are_kept(
    limit, client, tmp_path, monkeypatch
):
    for name in ('a', 'b'):
        (tmp_path / name).write_bytes(bytes(1000))
    for number in range(50):  # left by deleted uploads
        (tmp_path / f'empty/{number}').mkdir(parents=True)
    monkeypatch.setattr(server, 'MAX_FILES', 2)
    assert client.post(UPLOAD, content=b'leaf').status_code == 200
    for name, value in limit.items():
        module = limits if name == 'FREE_MEGABYTES' else server
        monkeypatch.setattr(module, name, value)
    assert client.post(UPLOAD, content=b'leaf').status_code == 413
    assert client.post('/', content=b'leaf').status_code == 200


def write_folder(folder, written):
    """Write an upload folder with an unlocked file."""
    folder.mkdir(mode=0o700)
    for name in ('lock', 'leaf.png'):
        (folder / name).touch()
        os.utime(folder / name, (written, written))


def test_page_removes_uploads_if_another_page_was_killed(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path))
    killed, others = tmp_path / 'mmclca-page-0', tmp_path / 'elsewhere'
    for folder in (killed, others):
        write_folder(folder, time.time() - 100)
    (tmp_path / 'mmclca-page-1').symlink_to(others)
    monkeypatch.setattr(server, '_launch', lambda *_: 'http://address')
    environment = dict(os.environ)
    with server.uploads_folder() as folder, server.serve(IdentifyTab(folder)):
        assert os.environ['GRADIO_TEMP_DIR'] == str(folder)
        assert not killed.exists()
        with server.uploads_folder():
            assert len([*tmp_path.glob('mmclca-page-*/lock')]) == 3
    assert dict(os.environ) == environment
    assert not [*tmp_path.glob('mmclca-page-[!1]*')]
    assert (others / 'leaf.png').exists()


def test_page_keeps_uploads_if_another_page_is_starting(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path))
    write_folder(tmp_path / 'mmclca-page-0', time.time())
    with server.uploads_folder():
        assert (tmp_path / 'mmclca-page-0/leaf.png').exists()


def test_page_answers_an_error_in_one_line_with_security_headers(
    client, capsys
):
    failed = client.get('/fails')
    assert failed.status_code == 500 and 'secret' not in failed.text
    (line,) = capsys.readouterr().err.splitlines()
    assert "KeyError: 'a secret'" in line
    for answer in (failed, client.get('/gone'), client.post('/')):
        found = {name: answer.headers.get(name) for name in server.HEADERS}
        assert found == server.HEADERS


@pytest.mark.parametrize(
    'host, name, address',
    [
        ('::1', '[::1]', 'http://[::1]:80/'),
        ('[::1]', '[::1]', 'http://[::1]:80/'),
        ('::', '[::]', 'http://[::1]:80/'),
        ('127.0.0.1', '127.0.0.1', 'http://127.0.0.1:80/'),
    ],
)
def test_page_listens_on_an_ipv6_address(host, name, address, tmp_path):
    asked = []

    def launch(server_name, **_):
        asked.append(server_name)
        return None, f'http://{server_name}:80/', None

    page, plain = SimpleNamespace(launch=launch), local_address(host)
    given = 80, plain, None, tmp_path, 1
    assert server._launch(page, *given) == address and asked == [name]


@pytest.mark.slow
def test_page_answers_at_an_ipv6_address():
    host = '::1'
    with (
        server.uploads_folder(host) as folder,
        server.serve(IdentifyTab(folder), host=host) as (address, _),
        urlopen(address) as answer,
    ):
        assert answer.status == 200
