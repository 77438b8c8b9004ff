# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Files of an exported web app."""

import json
import re
from functools import partial

import pytest
from PIL import Image
from small_web_app import CLASSES, write_small_app

from mmclca.deployment import web_app

LARGEST = 1_800  # lines of HTML, CSS and JavaScript
LARGEST_FILE = 200


@pytest.fixture
def export(tmp_path, monkeypatch):
    """Write an app, if need be without the runtime; return its folder."""
    monkeypatch.setattr(web_app, '_RUNTIME', web_app._SOURCES / 'app.js')
    return partial(write_small_app, tmp_path)


def test_web_app_is_complete(export):
    folder = export()
    manifest = json.loads((folder / 'manifest.webmanifest').read_bytes())
    assert manifest['name'] == 'Übung' and manifest['start_url'] == './'
    for icon in manifest['icons']:
        with Image.open(folder / icon['src']) as picture:
            assert icon['sizes'] == '{}x{}'.format(*picture.size)
    page = (folder / 'index.html').read_text()
    for name in re.findall(r'(?:href|src)="([^"]+)"', page):
        assert (folder / name).is_file()
    facts = json.loads((folder / 'model.json').read_bytes())
    assert facts['classes'] == CLASSES and (folder / facts['file']).is_file()
    assert facts['accuracy'] == dict(value=0.96, low=0.9, high=0.99)
    assert facts['validity'] == 'sessions' and facts['class_photos'] == []
    for name, digest in facts['runtime'].items():
        assert (
            web_app.compute_integrity((folder / name).read_bytes()) == digest
        )
    # hosts have no media type for others
    assert not [*folder.rglob('*.mjs')]


def test_service_worker_changes_with_the_model_only(export):
    folder = export()
    worker = (folder / 'sw.js').read_text()
    listed = json.loads(re.search(r'FILES = (\{.*?\});', worker, re.S)[1])
    files = {str(x.relative_to(folder)) for x in folder.rglob('*.*')}
    assert {*listed, 'sw.js', 'index.html'} == files | {'./'}
    (folder / 'CNAME').write_text('leaves.example')
    assert (export() / 'sw.js').read_text() == worker
    assert (export(seed=1) / 'sw.js').read_text() != worker
    assert (folder / 'CNAME').read_text() == 'leaves.example'


def test_web_app_without_runtime_names_the_command(
    export, tmp_path, monkeypatch
):
    monkeypatch.setattr(web_app, '_RUNTIME', tmp_path / 'version.txt')
    with pytest.raises(FileNotFoundError, match='fetch_web_runtime.py'):
        export()
    assert not (tmp_path / 'web').exists()


def test_sources_keep_their_line_limit():
    written = '.html', '.css', '.js'
    files = [x for x in web_app._SOURCES.glob('*.*') if x.suffix in written]
    sizes = {x.name: len(x.read_text().splitlines()) for x in files}
    assert sum(sizes.values()) <= LARGEST
    assert max(sizes.values()) <= LARGEST_FILE
    lines = [line for x in files for line in x.read_text().splitlines()]
    assert max(map(len, lines)) <= 79
