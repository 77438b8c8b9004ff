# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""tools/dev/fetch_web_runtime.py with a fake npm."""

import base64
import hashlib
import io
import tarfile

import pytest
from tiny_run import ROOT, load_tool

TOOL = ROOT / 'tools/dev/fetch_web_runtime.py'


@pytest.fixture
def tool(monkeypatch, tmp_path):
    """The tool; npm copies a package with its digest."""
    npm = tmp_path / 'npm'
    npm.write_text('#!/bin/sh\n/bin/cp "$0.tgz" package.tgz')
    npm.chmod(0o755)
    monkeypatch.setenv('PATH', str(tmp_path))
    tool = load_tool(monkeypatch, TOOL, tmp_path / 'runtime')
    with tarfile.open(f'{npm}.tgz', 'w:gz') as archive:
        for name in tool['FILES']:
            archive.addfile(
                tarfile.TarInfo(f'package/dist/{name}'), io.BytesIO()
            )
    digest = hashlib.sha512((tmp_path / 'npm.tgz').read_bytes()).digest()
    integrity = f'sha512-{base64.b64encode(digest).decode()}'
    tool['main'].__globals__['INTEGRITY'] = integrity
    return tool


def test_runtime_is_fetched_once(tool, tmp_path):
    tool['main']()
    names = {file.name for file in (tmp_path / 'runtime').iterdir()}
    assert names == {*tool['FILES'], tool['MARK']}
    (tmp_path / 'npm').unlink()
    tool['main']()


@pytest.mark.parametrize(
    'name, said', [('npm', 'npm is missing'), ('npm.tgz', 'npm failed')]
)
def test_runtime_error_names_reason_and_command(name, said, tool, tmp_path):
    (tmp_path / name).unlink()
    with pytest.raises(SystemExit, match=f'{said}.*fetch_web_runtime.py'):
        tool['main']()


def test_runtime_of_another_digest_is_refused(tool, tmp_path):
    (tmp_path / 'npm.tgz').write_bytes(b'other')
    with pytest.raises(SystemExit, match='expected sha512'):
        tool['main']()
    assert not (tmp_path / 'runtime').exists()


def test_license_page_has_the_version(tool):
    page = (ROOT / 'docs/licenses.md').read_text()
    assert f'onnxruntime-web {tool["VERSION"]} (MIT)' in page
