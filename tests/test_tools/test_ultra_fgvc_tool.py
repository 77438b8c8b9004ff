# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""tools/dataset_converters/ultra_fgvc.py: check, import, download."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO

import pytest
import ultra_fgvc_trees as trees
from huggingface_hub import constants
from PIL import Image
from tiny_run import ROOT, end_of

from mmclca.datasets.ultra_fgvc import UltraFGVC, importing

TOOL = ROOT / 'tools/dataset_converters/ultra_fgvc.py'
FILE = 'cotton80_dataset.parquet'
LEAVES = trees.cotton_leaves()
COUNTS = '80 classes, images: 160 train, 80 val, 240 test'


def run(command, folder, *args, name='cotton80'):
    with pytest.MonkeyPatch.context() as patch:
        words = (command, folder, '--dataset', name, *args)
        return end_of(patch, TOOL, *words)


def names(root, split):
    data_set = UltraFGVC('cotton80', split, root, serialize_data=False)
    items = map(data_set.get_data_info, range(len(data_set)))
    return [item['img_path'].rsplit('/', 1)[1] for item in items]


def test_check_refuses_image_if_damaged_inside(tmp_path, capsys):
    root = tmp_path / 'COTTON'
    trees.write('released', root, 'cotton80', LEAVES)
    assert run('check', root) == 0
    out = capsys.readouterr().out
    assert f'released at {root}\n' in out
    assert COUNTS in out
    content = bytearray(trees.noise('.png'))
    content[500:600] = bytes(100)
    file = root / 'images/4_2_test.png'
    file.unlink()
    file.write_bytes(content)
    for command in (['check', root], ['import', root, '--to', 'no']):
        assert run(*command) == 2
        assert '/4_2_test.png: ' in capsys.readouterr().err


def test_import_generates_missing_names(tmp_path, capsys):
    jpg = BytesIO()
    Image.new('RGB', (4, 4)).save(jpg, 'JPEG')
    images = [trees.png()] * 479 + [jpg.getvalue()]
    trees.write_rows(tmp_path / FILE, LEAVES, images)
    assert run('check', tmp_path) == 0
    assert run('import', tmp_path, '--to', tmp_path / 'cotton') == 0
    out = capsys.readouterr().out
    assert COUNTS in out and out.endswith(f'{tmp_path}/cotton\n')
    assert names(tmp_path / 'cotton', 'val')[:2] == [
        '1_3_train.png',
        '2_3_train.png',
    ]
    assert names(tmp_path / 'cotton', 'test')[-1] == '80_3_test.jpg'


def test_import_keeps_names_apart(tmp_path):
    folder = tmp_path / 'train' / '1'
    folder.mkdir(parents=True)
    values = {'1_2_train.png': 1, 'leaf.png': 2, 'other.png': 3}
    for name, value in values.items():
        (folder / name).write_bytes(trees.png(value=value))
    to = '--to', tmp_path / 'to'
    assert run('import', tmp_path, '--partial', *to) == 0
    images = tmp_path / 'to' / 'images'
    assert {x.name: x.read_bytes() for x in images.iterdir()} == {
        f'1_{value}_train.png': trees.png(value=value) for value in (1, 2, 3)
    }


def test_import_leaves_no_files_if_disk_is_full(tmp_path, monkeypatch, capsys):
    trees.write('csv', tmp_path, 'cotton80', LEAVES)
    before = {*tmp_path.iterdir()}
    read, calls = importing.read_bytes, []

    def full(path):
        calls.append(path)
        if len(calls) > 100:
            raise OSError('No space left on device')
        return read(path)

    monkeypatch.setattr(importing, 'read_bytes', full)
    assert run('import', tmp_path, '--to', tmp_path / 'to') == 2
    assert 'No space left' in capsys.readouterr().err
    assert {*tmp_path.iterdir()} == before


# download


class HubHandler(BaseHTTPRequestHandler):
    """Minimal Hugging Face hub for downloads."""

    files = {
        f'datasets/ufgvc/{file}': file.encode()
        for one in trees.PARQUET_FILES.values()
        for file in one.values()
    }

    def log_message(self, *args):
        pass

    def answer(self, content):
        self.send_response(404 if content is None else 200)
        self.send_header('X-Repo-Commit', 'a' * 40)
        self.send_header('ETag', f'"{hash(content)}"')
        self.send_header('Content-Length', str(len(content or b'')))
        self.end_headers()
        return content or b''

    def do_HEAD(self):
        path = self.path.partition('/resolve/main/')[2]
        return self.answer(self.files.get(path))

    def do_GET(self):
        self.wfile.write(self.do_HEAD())


@pytest.fixture
def fetch(monkeypatch, tmp_path):
    """Download from a local hub; exit code and files."""
    server = ThreadingHTTPServer(('127.0.0.1', 0), HubHandler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    monkeypatch.setenv('NO_PROXY', '127.0.0.1')
    endpoint = f'http://127.0.0.1:{server.server_port}'
    monkeypatch.setenv('HF_ENDPOINT', endpoint)
    monkeypatch.setattr(constants, 'HF_HUB_DISABLE_XET', True, raising=False)

    def run(*args):
        words = ('download', *args, '--to', tmp_path)
        code = end_of(monkeypatch, TOOL, *words)
        return code, {
            file.name: file.read_bytes().decode()
            for file in tmp_path.glob('datasets/ufgvc/*')
        }

    yield run
    server.shutdown()
    thread.join()
    server.server_close()


def test_download(fetch, capsys, tmp_path):
    assert fetch('cotton80') == (0, {FILE: FILE})
    assert f'{tmp_path}/datasets/ufgvc/{FILE}\n' in capsys.readouterr().out
    stages = trees.PARQUET_FILES['soyageing'].values()
    code, files = fetch('SoyAgeing')
    assert code == 0 and {*files} == {FILE, *stages}
    code, files = fetch('all')
    assert code == 0 and len(files) == 9


def test_download_fails_if_file_is_unknown_or_missing(
    fetch, monkeypatch, capsys
):
    assert fetch('Cotton') == (2, {})
    assert "'Cotton'" in capsys.readouterr().err
    monkeypatch.setitem(HubHandler.files, f'datasets/ufgvc/{FILE}', None)
    assert fetch('cotton80') == (2, {})
    assert 'cannot download' in capsys.readouterr().err


@pytest.mark.slow  # the hub's client retries
def test_download_fails_if_no_server_answers(fetch, monkeypatch, capsys):
    monkeypatch.setenv('HF_ENDPOINT', 'http://127.0.0.1:9')
    assert fetch('soygene') == (2, {})
    assert 'cannot download SoyGene' in capsys.readouterr().err
