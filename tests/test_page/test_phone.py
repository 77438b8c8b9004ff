# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Open the app on a phone, from the form."""

import ssl
from pathlib import Path
from types import SimpleNamespace
from urllib.request import urlopen

import pytest

from mmclca.deployment import app_server, local_certificate
from mmclca.page import phone

pytest.importorskip('cryptography')
pytest.importorskip('segno')


@pytest.fixture
def exports(tmp_path, monkeypatch):
    """Names of exported models."""
    exports = []

    def run_task(task, settings):
        assert task == 'export'
        exports.append(settings['name'])
        out = Path(settings['out'])
        out.mkdir()
        (out / 'index.html').write_text(settings['name'])

    monkeypatch.setattr(phone, 'run_task', run_task)
    monkeypatch.setattr(app_server, 'find_address', lambda: '127.0.0.1')
    monkeypatch.setattr(local_certificate, 'FOLDER', tmp_path / 'certificate')
    return exports


def make_model(tmp_path, name):
    if not (tmp_path / name).exists():
        (tmp_path / name).write_text('weights')
    files = SimpleNamespace(path=tmp_path, model=tmp_path / name)
    return SimpleNamespace(name=name, files=files, photos=tmp_path)


def test_phone_server_exports_each_version_once(exports, tmp_path):
    context = ssl.create_default_context()
    server = phone.PhoneServer(tmp_path / 'phone')
    try:
        for name in ('first', 'first', 'second'):
            html = server.open(make_model(tmp_path, name))
            address = server._server.address
            assert address in html and 'data:image/svg+xml' in html
            authority = tmp_path / 'certificate/authority.crt'
            context.load_verify_locations(authority)
            content = urlopen(address, context=context).read()
            assert content.decode() == name
        assert exports == ['first', 'second']
    finally:
        server.close()
    with pytest.raises(OSError, match='refused'):
        urlopen(address, context=context)
