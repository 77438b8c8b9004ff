# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import csv
import hashlib
import re
import shutil
import threading
from collections import namedtuple
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path

import cv2
import numpy as np
import pyarrow.parquet as pq
import pytest
import ultra_fgvc_trees as trees
from PIL import Image
from tiny_run import ROOT, end_of

from mmclca.datasets.preparation import write as writing
from mmclca.datasets.ultra_fgvc import UltraFGVC

TOOL = ROOT / 'tools/dataset_converters/ultra_fgvc.py'
LAYOUTS = ('csv', 'released', 'folders', 'parquet')
FILE = 'cotton80_dataset.parquet'
LEAVES = trees.cotton_leaves()


def run(*args):
    with pytest.MonkeyPatch.context() as patch:
        return end_of(patch, TOOL, *args)


def convert(source, layout, to, *more, name='cotton80'):
    options = ('--dataset', name, '--layout', layout, '--to', to)
    return run('convert', source, *options, *more)


def listing(root, name, split, **kwargs):
    data_set = UltraFGVC(name, split, root, serialize_data=False, **kwargs)
    return [
        (item['img_path'].rsplit('/', 1)[1], item['gt_label'])
        for item in map(data_set.get_data_info, range(len(data_set)))
    ]


def table(out):
    return [' '.join(line.split()) for line in out.splitlines()]


@pytest.fixture(scope='module')
def cotton(tmp_path_factory):
    """Cotton80 in two layouts, in one folder."""
    root = tmp_path_factory.mktemp('data')
    trees.write('csv', root / 'cotton', 'cotton80', LEAVES)
    trees.write('parquet', root, 'cotton80', LEAVES)
    return root


# check


def test_check_of_a_good_folder(cotton, capsys, tmp_path):
    report = tmp_path / 'bad.csv'
    assert run('check', cotton, '--jobs', 2, '--report', report) == 0
    out = capsys.readouterr().out
    lines = table(out)
    assert 'Cotton80 csv train 80 160 80 / 160 0 0' in lines
    assert 'Cotton80 csv test 80 240 80 / 240 0 0' in lines
    assert 'Cotton80 parquet val 80 80 80 / 80 0 0' in lines
    assert sum(line.startswith('Cotton80 ') for line in lines) == 6
    assert 'All is well.' in out
    assert report.read_text().split() == ['dataset,layout,split,path,problem']


def test_check_finds_what_is_wrong(tmp_path, capsys):
    root = tmp_path / 'COTTON'
    trees.write('released', root, 'cotton80', LEAVES)
    images = root / 'images'
    bad = {
        '1_5_train.png': None,
        '2_1_train.png': b'',
        '3_2_test.png': b'no image',
        '4_2_test.png': trees.png((64, 64, 3))[:-40],
    }
    for name, content in bad.items():
        (images / name).unlink()
        if content is not None:
            (images / name).write_bytes(content)
    report = tmp_path / 'bad.csv'
    assert run('check', tmp_path, '--jobs', 1, '--report', report) == 1
    out = capsys.readouterr().out
    lines = table(out)
    assert 'Cotton80 released train 80 160 80 / 160 1 0' in lines
    assert 'Cotton80 released val 80 80 80 / 80 0 1' in lines
    assert 'Cotton80 released test 80 240 80 / 240 0 2' in lines
    assert 'Something is wrong: ' in out
    with open(report) as file:
        rows = {Path(r['path']).name: r for r in csv.DictReader(file)}
    assert rows.keys() == bad.keys()
    assert rows['1_5_train.png']['problem'] == 'missing'
    assert rows['2_1_train.png']['problem'] == 'empty file'
    assert "begins with b'no image'" in rows['3_2_test.png']['problem']
    assert rows['4_2_test.png']['split'] == 'test'


def test_check_decodes(tmp_path, capsys):
    """Damage within a file that begins and ends as it must."""
    root = tmp_path / 'COTTON'
    trees.write('released', root, 'cotton80', LEAVES)
    content = bytearray(trees.noise('.png'))
    content[500:600] = bytes(100)
    (root / 'images' / '4_2_test.png').unlink()
    (root / 'images' / '4_2_test.png').write_bytes(content)
    assert len(listing(root, 'cotton80', 'test')) == 240
    assert run('check', tmp_path, '--jobs', 1) == 1
    assert '/4_2_test.png\n    ' in capsys.readouterr().out


def test_check_knows_a_set_without_its_name(tmp_path, capsys):
    leaves = [x for x in trees.ageing_leaves() if x.stage == 'R4']
    trees.write('released', tmp_path / 'x', 'soyageing', leaves)
    assert run('check', tmp_path / 'x' / 'R4', '--jobs', 1) == 0
    out = capsys.readouterr().out
    assert 'SoyAgeing-R4' in out and 'SoyAgeing ' not in out
    (tmp_path / 'x' / 'R4').rename(tmp_path / 'leaves')
    assert run('check', tmp_path / 'leaves', '--jobs', 1) == 0
    assert 'SoyAgeing-R4' in capsys.readouterr().out


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """Sets without an image, a split or most classes; bad, and nothing."""
    folder = tmp_path_factory.mktemp('mistakes')
    for name, part in dict(
        counts=[x for x in LEAVES if x.name != '9_6_test.png'],
        lists=[x for x in LEAVES if x.split != 'test'],
        part=[x for x in LEAVES if x.label < 3],
    ).items():
        trees.write('csv', folder / name / 'cotton', 'cotton80', part)
    (folder / 'lists/cotton/test.csv').unlink()
    (folder / 'bad/cotton').mkdir(parents=True)
    (folder / 'bad/cotton/train.csv').write_text('class,path\n')
    (folder / 'nothing').mkdir()
    return folder


@pytest.mark.parametrize(
    'words, code, said',
    [
        ('check counts', 1, 'Cotton80 csv test 80 239 80 / 240 0 0'),
        ('check lists', 1, 'Cotton80, test: '),
        ('check lists', 1, 'no image is listed'),
        ('check bad', 1, "expected 'class_id' (from 0) and 'dir'"),
        ('check nothing', 2, 'Name the one that it should hold'),
        ('check nothing --dataset SoyGene', 2, 'SoyGene was not found'),
        ('check no', 2, 'no does not exist'),
        (
            'convert part --dataset cotton80 --layout folders --to to',
            *(2, 'expected 80 classes'),
        ),
        ('download soygene --to to', 2, '404'),
        ('download Cotton --to to', 2, "dataset='Cotton' is not"),
    ],
)
def test_mistakes(folder, hub, monkeypatch, capsys, words, code, said):
    monkeypatch.chdir(folder)
    jobs = ['--jobs', 1] if words.startswith('check') else []
    assert run(*words.split(), *jobs) == code
    out, err = capsys.readouterr()
    assert said in ' '.join((out if code == 1 else err).split())


# convert


@pytest.mark.parametrize('layout', LAYOUTS)
def test_convert_and_back(cotton, tmp_path, layout):
    """From the CSV files to each layout and back again."""
    there, back = tmp_path / 'there', tmp_path / 'back'
    assert convert(cotton, layout, there) == 0
    assert convert(there, 'csv', back) == 0
    source = cotton / 'cotton'
    for split in ('train', 'val', 'trainval', 'test'):
        expected = listing(source, 'cotton80', split)
        assert listing(back, 'cotton80', split) == expected
        converted = listing(there, 'cotton80', split, layout=layout)
        assert [x for _, x in converted] == [x for _, x in expected]
    for split in ('train', 'val', 'train_val', 'test'):
        old, new = source, back / 'Cotton80'
        lines = [
            sorted((root / f'{split}.csv').read_text().splitlines())
            for root in (old, new)
        ]
        assert lines[0] == lines[1]
    image = next((back / 'Cotton80').rglob('7_2_test.png'))
    assert image.read_bytes() == trees.png()


@pytest.mark.parametrize('layout', LAYOUTS)
def test_convert_all_stages(tmp_path, layout):
    leaves = trees.ageing_leaves(10)
    trees.write('released', tmp_path / 'soy_aging', 'soyageing', leaves)
    to = tmp_path / 'to'
    assert convert(tmp_path, layout, to, '--partial', name='soyageing') == 0
    for name, split in (
        ('soyageing', 'val'),
        ('soyageing', 'test'),
        ('soyageing_r5', 'trainval'),
    ):
        part = dict(check_counts=False)
        found = listing(to, name, split, layout=layout, **part)
        source = listing(tmp_path / 'soy_aging', name, split, **part)
        assert len(source) in (50, 250)
        assert [x for _, x in found] == [x for _, x in source]


def test_convert_gives_names_where_there_are_none(tmp_path):
    """The mirror keeps no names; images of any format keep theirs."""
    jpg = BytesIO()
    Image.new('RGB', (4, 4)).save(jpg, 'JPEG')
    images = [trees.png()] * 479 + [jpg.getvalue()]
    trees.write_rows(tmp_path / FILE, LEAVES, images)
    assert convert(tmp_path, 'released', tmp_path) == 0
    names = {x.name for x in (tmp_path / 'Cotton80' / 'images').iterdir()}
    assert len(names) == 480
    assert {'1_1_train.png', '1_3_train.png', '1_1_test.png'} <= names
    assert '80_3_test.jpg' in names
    first = listing(tmp_path / FILE, 'cotton80', 'test')
    second = listing(tmp_path / 'Cotton80', 'cotton80', 'test')
    assert [x for _, x in first] == [x for _, x in second]


def test_names_that_are_given_do_not_collide(tmp_path):
    folder = tmp_path / 'Cotton80' / 'train' / '1'
    folder.mkdir(parents=True)
    values = {'1_1_train.png': 1, 'leaf.png': 2, 'other.png': 3}
    for name, value in values.items():
        (folder / name).write_bytes(trees.png(value=value))
    assert convert(tmp_path, 'released', tmp_path / 'to', '--partial') == 0
    images = tmp_path / 'to' / 'Cotton80' / 'images'
    assert {x.name: x.read_bytes() for x in images.iterdir()} == {
        f'1_{value}_train.png': trees.png(value=value) for value in (1, 2, 3)
    }


def test_convert_makes_small_row_groups(cotton, tmp_path, monkeypatch):
    size = len(trees.png())
    monkeypatch.setattr(writing, 'ROW_GROUP_BYTES', 10 * size)
    source = ('--from-layout', 'parquet')
    assert convert(cotton, 'parquet', tmp_path, *source) == 0
    metadata = pq.ParquetFile(tmp_path / 'Cotton80' / FILE).metadata
    assert metadata.num_row_groups == 48
    assert run('check', tmp_path, '--jobs', 1) == 0


def test_convert_does_not_overwrite(cotton, tmp_path, capsys):
    target = tmp_path / 'Cotton80'
    target.mkdir()
    (target / 'mine.txt').write_text('mine')
    assert convert(cotton, 'csv', tmp_path) == 2
    assert '--force replaces it' in capsys.readouterr().err
    assert (target / 'mine.txt').read_text() == 'mine'
    assert convert(cotton, 'csv', tmp_path, '--force') == 0
    assert not (target / 'mine.txt').exists()
    assert [x.name for x in tmp_path.iterdir()] == ['Cotton80']


def test_convert_refuses_to_replace_its_source(tmp_path, capsys):
    root = tmp_path / 'Cotton80'
    trees.write('csv', root, 'cotton80', LEAVES)
    assert convert(tmp_path, 'released', tmp_path, '--force') == 2
    assert 'holds the source' in capsys.readouterr().err
    assert len(listing(root, 'cotton80', 'test')) == 240


def test_a_conversion_that_fails_leaves_what_was_there(
    cotton, tmp_path, monkeypatch, capsys
):
    assert convert(cotton, 'csv', tmp_path) == 0
    before = listing(tmp_path, 'cotton80', 'test')
    get, calls = writing.read_bytes, []

    def full(path):
        calls.append(path)
        if len(calls) > 100:
            raise OSError('No space left on device')
        return get(path)

    monkeypatch.setattr(writing, 'read_bytes', full)
    assert convert(cotton, 'csv', tmp_path, '--force') == 2
    assert 'No space left' in capsys.readouterr().err
    assert [x.name for x in tmp_path.iterdir()] == ['Cotton80']
    assert listing(tmp_path, 'cotton80', 'test') == before


def test_bad_rows_of_a_parquet_file(tmp_path, capsys):
    """All of them are named; by a conversion, before it writes."""
    images = [trees.png()] * 480
    images[7], images[9], images[400] = None, b'x', b''
    trees.write_rows(tmp_path / FILE, LEAVES, images)
    assert run('check', tmp_path / FILE, '--jobs', 1) == 1
    out = capsys.readouterr().out
    assert f'{FILE}/7\n    missing' in out
    assert f"{FILE}/9\n    no image: it begins with b'x'" in out
    assert convert(tmp_path, 'csv', tmp_path) == 2
    error = capsys.readouterr().err
    assert f'1 images are missing: {FILE}/7 ' in error
    assert f'1 images are empty: {FILE}/400 ' in error
    assert f"{FILE}/9: no image: it begins with b'x'" in error
    assert [x.name for x in tmp_path.iterdir()] == [FILE]


# download


class Hub(ThreadingHTTPServer):
    """As much of the hub as a download needs, with faults to order."""

    def __init__(self, content):
        super().__init__(('127.0.0.1', 0), HubHandler)
        self.content = content
        self.etag = hashlib.sha256(content).hexdigest()
        self.drop_at = None  # bytes after which a connection breaks, once
        self.broken = False  # whether content is refused after that
        self.gets = []  # the Range of each request for content


class HubHandler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    path_wanted = (
        '/datasets/hibana2077/CV-dataset-all-in-parquet/resolve/main/'
        f'datasets/ufgvc/{FILE}'
    )

    def log_message(self, *args):
        pass

    def start(self, status, length):
        self.send_response(status)
        self.send_header('X-Repo-Commit', 'a' * 40)
        self.send_header('ETag', f'"{self.server.etag}"')
        self.send_header('Content-Length', str(length))
        self.send_header('Accept-Ranges', 'bytes')

    def do_HEAD(self):
        found = self.path == self.path_wanted
        self.start(200 if found else 404, len(self.server.content))
        self.end_headers()

    def do_GET(self):
        hub, wanted = self.server, self.headers.get('Range')
        hub.gets.append(wanted)
        if hub.broken and hub.drop_at is None:
            self.start(503, 0)
            self.end_headers()
            return
        first = start_of(wanted) if wanted else 0
        content = hub.content[first:]
        self.start(206 if wanted else 200, len(content))
        if wanted:
            end, size = len(hub.content) - 1, len(hub.content)
            self.send_header('Content-Range', f'bytes {first}-{end}/{size}')
        self.end_headers()
        drop_at, hub.drop_at = hub.drop_at, None
        self.wfile.write(content[:drop_at])
        self.close_connection = drop_at is not None


@pytest.fixture(scope='module')
def content(tmp_path_factory):
    """12 MB, which is more than is read from the hub at a time."""
    path = tmp_path_factory.mktemp('hub') / FILE
    noise = np.random.default_rng(0).bytes(480 * 92 * 92 * 3)
    noise = np.frombuffer(noise, np.uint8).reshape(480, 92, 92, 3)
    images = [cv2.imencode('.png', x)[1].tobytes() for x in noise]
    trees.write_rows(path, LEAVES, images)
    return path.read_bytes()


@pytest.fixture
def hub(content, monkeypatch):
    """A hub on this machine, to which downloads go."""
    monkeypatch.setattr('huggingface_hub.file_download.time.sleep', bool)
    server = Hub(content)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    monkeypatch.setenv('NO_PROXY', '127.0.0.1')
    monkeypatch.setenv('HF_ENDPOINT', f'http://127.0.0.1:{server.server_port}')
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def start_of(wanted):
    return int(wanted.removeprefix('bytes=').removesuffix('-'))


def fetch(to, *args):
    return run('download', 'cotton80', '--to', to, *args)


def test_download_goes_on_where_the_connection_broke(
    hub, tmp_path, content, capsys, monkeypatch
):
    monkeypatch.setenv('TQDM_POSITION', '-1')  # a bar without a terminal
    hub.drop_at = 11_000_000
    assert fetch(tmp_path) == 0
    first, second = hub.gets
    assert first is None and 0 < start_of(second) <= 11_000_000
    assert (tmp_path / FILE).read_bytes() == content
    assert [x.name for x in tmp_path.iterdir()] == [FILE]
    captured = capsys.readouterr()
    assert 'is whole, its checksum is right' in captured.out
    assert '100%' in captured.err  # the progress bar
    assert len(listing(tmp_path, 'cotton80', 'train')) == 160
    assert fetch(tmp_path) == 0 and len(hub.gets) == 2  # nothing to do


def test_download_goes_on_in_a_later_run(hub, tmp_path, content, capsys):
    hub.drop_at, hub.broken = 11_000_000, True
    assert fetch(tmp_path) == 2
    (part,) = tmp_path.iterdir()
    kept = part.stat().st_size
    error = capsys.readouterr().err
    assert f'{kept} of {len(content)} bytes are kept' in error
    assert 'By hand' in error
    with pytest.raises(FileNotFoundError):  # a part is not taken for whole
        UltraFGVC('cotton80', data_root=tmp_path)
    hub.broken, hub.gets = False, []
    assert fetch(tmp_path) == 0
    assert [start_of(x) for x in hub.gets] == [kept] and kept > 0
    assert (tmp_path / FILE).read_bytes() == content
    assert [x.name for x in tmp_path.iterdir()] == [FILE]


@pytest.mark.parametrize(
    'etag, said',
    [
        ('f' * 64, rf'checksum(?s:.*){"f" * 64}'),
        ('a' * 40, 'no size and SHA-256'),  # a small file in git has none
    ],
)
def test_checksums(hub, tmp_path, capsys, etag, said):
    hub.etag = etag
    assert fetch(tmp_path) == 2
    assert re.search(said, capsys.readouterr().err)
    assert list(tmp_path.iterdir()) == []


def test_download_looks_at_the_disk_first(hub, tmp_path, monkeypatch, capsys):
    usage = namedtuple('usage', 'free')(1 << 20)
    monkeypatch.setattr(shutil, 'disk_usage', lambda path: usage)
    assert fetch(tmp_path) == 2
    assert '1 MB free; the download needs 75 MB' in capsys.readouterr().err
    assert hub.gets == []


def test_a_spoiled_part_is_refused(hub, tmp_path, content):
    part = tmp_path / f'.{FILE}.{hub.etag[:12]}.part'
    part.write_bytes(b'x' * 5000)
    assert fetch(tmp_path) == 2
    assert hub.gets == ['bytes=5000-'] and list(tmp_path.iterdir()) == []
    part.write_bytes(content + b'x')  # longer than the whole
    assert fetch(tmp_path) == 0
    assert (tmp_path / FILE).read_bytes() == content


def test_download_keeps_a_file_that_differs(hub, tmp_path, capsys, content):
    (tmp_path / FILE).write_bytes(b'mine')
    assert fetch(tmp_path) == 2
    assert 'is not the file of the hub' in capsys.readouterr().err
    assert (tmp_path / FILE).read_bytes() == b'mine' and hub.gets == []
    assert fetch(tmp_path, '--force') == 0
    assert (tmp_path / FILE).read_bytes() == content


def test_all_means_every_file_once(tmp_path, monkeypatch):
    fetched = []

    def note(part, folder, revision, force):
        fetched.append(part.parquet)
        return Path(folder) / part.parquet

    monkeypatch.setattr('mmclca.datasets.preparation.download.download', note)
    assert run('download', 'all', '--to', tmp_path) == 0
    files = [f for x in trees.PARQUET_FILES.values() for f in x.values()]
    assert sorted(fetched) == sorted(files) and len(files) == 9
    fetched.clear()
    run('download', 'SoyAgeing', '--to', tmp_path)
    assert fetched == list(trees.PARQUET_FILES['soyageing'].values())


def test_download_without_a_network(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv('NO_PROXY', '127.0.0.1')
    monkeypatch.setenv('HF_ENDPOINT', 'http://127.0.0.1:9')
    assert fetch(tmp_path) == 2
    error = capsys.readouterr().err
    assert 'cannot be reached' in error and 'docs/data_sets.md' in error
    assert 'hf download hibana2077/CV-dataset-all-in-parquet' in error
    assert FILE in error and 'Griffith' in error
