# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Serve the web app on the local network, with certificates."""

import socket
import ssl
import stat
import sys
from contextlib import suppress
from datetime import timedelta
from types import SimpleNamespace
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest

from mmclca.cli.commands import export
from mmclca.deployment import app_server, local_certificate
from mmclca.deployment.app_server import AppServer, find_address
from mmclca.errors import Error

pytest.importorskip('cryptography')
pytest.importorskip('segno')
HERE = '127.0.0.1'


@pytest.fixture(autouse=True)
def certificates(tmp_path, monkeypatch):
    """Folder for the authority."""
    folder = tmp_path / 'certificate'
    monkeypatch.setattr(local_certificate, 'FOLDER', folder)
    return folder


@pytest.fixture
def app(tmp_path):
    """Folder with an app, and another file."""
    folder = tmp_path / 'web'
    (folder / 'runtime').mkdir(parents=True)
    (folder / 'index.html').write_text('page')
    (folder / 'runtime/a.wasm').write_text('code')
    (folder / 'private.txt').write_text('mine')
    (tmp_path / 'model.pth').write_text('mine')
    files = [folder / 'index.html', folder / 'runtime/a.wasm']
    return SimpleNamespace(folder=folder, files=files)


def trusting(certificates):
    file = certificates / 'authority.crt'
    return ssl.create_default_context(cafile=str(file))


def test_server_sends_only_the_files_of_the_app(app, certificates):
    server = AppServer(HERE, 0)
    context = trusting(certificates)
    with server, server.serving(app.folder, app.files):
        for name, expected in {
            '': b'page',
            'index.html?a=1': b'page',
            'runtime/a.wasm': b'code',
            'certificate.crt': (certificates / 'authority.crt').read_bytes(),
        }.items():
            answer = urlopen(server.address + name, context=context)
            assert answer.read() == expected
        assert answer.headers['Content-Type'] == 'application/x-x509-ca-cert'
        for name in ('private.txt', '../model.pth', '%2e%2e/model.pth'):
            with pytest.raises(HTTPError, match='404'):
                urlopen(server.address + name, context=context)


def test_refused_certificate_is_reported_once(app):
    refusals = []
    server = AppServer(HERE, 0, lambda: refusals.append(1))
    with server, server.serving(app.folder, app.files):
        for _ in range(2):
            with pytest.raises(URLError, match='CERTIFICATE_VERIFY_FAILED'):
                urlopen(server.address)
        with socket.create_connection((HERE, server.server_port)) as phone:
            phone.sendall(b'GET / HTTP/1.1\r\n\r\n')  # without encryption
            with suppress(ConnectionResetError):
                phone.recv(100)
    assert refusals == [1]


def test_used_port_is_refused():
    with AppServer(HERE, 0) as server:
        port = server.server_port
        with pytest.raises(OSError, match=f'port {port}: the port is in use'):
            AppServer(HERE, port)


@pytest.mark.parametrize('is_offline', [True, False])
def test_computer_without_network_is_refused(is_offline, monkeypatch):
    class Probe:
        def __init__(self, *_):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def connect(self, _):
            if is_offline:
                raise OSError('Network is unreachable')

        def getsockname(self):
            return HERE, 9

    monkeypatch.setattr(app_server.socket, 'socket', Probe)
    with pytest.raises(Error, match='only localhost was found'):
        find_address()


def test_authority_is_kept_and_private(certificates):
    first = local_certificate.Authority.open(HERE)
    again = local_certificate.Authority.open('192.168.1.7')
    assert first.encode() == again.encode()
    if sys.platform != 'win32':
        for path in (certificates, certificates / 'authority.key'):
            assert not stat.S_IMODE(path.stat().st_mode) & 0o077


def test_authority_is_replaced_if_it_does_not_fit(certificates, monkeypatch):
    first = local_certificate.Authority.open(HERE)
    other = local_certificate.Authority.open('198.51.100.7')
    assert first.encode() != other.encode() and other.permits(HERE)
    now = local_certificate._now()
    later = now + timedelta(days=710)
    monkeypatch.setattr(local_certificate, '_now', lambda: later)
    assert not other.permits(HERE)


def test_authority_signs_for_no_website(certificates):
    authority = local_certificate.Authority.open(HERE)
    context = authority.make_context('198.51.100.7')  # a public address
    client = trusting(certificates)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = context.wrap_bio(outgoing, incoming, server_side=True)
    phone = client.wrap_bio(incoming, outgoing, server_hostname='198.51.100.7')
    with pytest.raises(ssl.SSLError, match='permitted subtree violation'):
        for _ in range(4):
            for side in (phone, server):
                with suppress(ssl.SSLWantReadError):
                    side.do_handshake()


def test_damaged_authority_is_named(certificates):
    local_certificate.Authority.open(HERE)
    (certificates / 'authority.key').write_text('damaged')
    with pytest.raises(Error, match='is damaged .* delete this folder'):
        local_certificate.Authority.open(HERE)


def test_qr_code_is_text_and_picture():
    address = 'https://192.168.1.7:8443/'
    lines = app_server.draw_qr_lines(address)
    assert len(lines) > 10 and len({*map(len, lines)}) <= 2
    picture = app_server.make_qr_picture(address)
    assert picture.startswith('data:image/svg+xml')


def test_command_shows_the_code_until_it_is_stopped(app, monkeypatch, capsys):
    def press(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(export.time, 'sleep', press)
    server = AppServer(HERE, 0)
    export.serve(server, app.folder, app.files)
    printed = capsys.readouterr().out.splitlines()
    code = app_server.draw_qr_lines(server.address)
    assert printed[: len(code)] == code
    assert printed[-1] == 'Stopped'


def test_missing_package_names_the_extra(monkeypatch):
    monkeypatch.setattr('mmclca.utils.extras.find_spec', lambda name: None)
    with pytest.raises(ImportError, match=r'mmclca\[serve\]'):
        AppServer(HERE, 0)
