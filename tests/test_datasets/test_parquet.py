# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import os
import pickle
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import ultra_fgvc_trees as trees
from mmengine import Config, fileio
from mmpretrain import ImageClassificationInferencer
from tiny_run import CLASSES, write_run
from torch.utils.data import DataLoader, Dataset

from mmclca.datasets.parquet import (
    ImageColumn,
    ParquetBackend,
    iter_images,
    open_parquet,
    parquet_uri,
    split_uri,
)

ROWS = [bytes([i]) * 1000 for i in range(20)]


@pytest.fixture
def file(tmp_path):
    """20 rows of 1000 bytes in four row groups."""
    path = tmp_path / 'leaves.parquet'
    pq.write_table(pa.table(dict(image=ROWS)), path, row_group_size=5)
    return path


@pytest.fixture
def reads(monkeypatch):
    """The row groups that are read from disk, in order."""
    groups = []
    read = ImageColumn.read
    monkeypatch.setattr(
        ImageColumn,
        'read',
        lambda self, group: groups.append(group) or read(self, group),
    )
    return groups


def test_mmengine_reads_every_row(file):
    uri = parquet_uri(file, 12)
    assert uri == f'parquet://{file}/12' and split_uri(uri) == (str(file), 12)
    assert [fileio.get(parquet_uri(file, i)) for i in range(20)] == ROWS
    assert fileio.exists(uri) and not fileio.exists(parquet_uri(file, 20))
    assert not fileio.exists(parquet_uri(file.with_name('no.parquet'), 0))


def test_a_relative_path_becomes_absolute(file, monkeypatch):
    monkeypatch.chdir(file.parent)
    assert parquet_uri(file.name, 3) == f'parquet://{file}/3'


def test_shuffled_reading_costs_one_reading(file, reads):
    backend = ParquetBackend()
    for row in np.random.default_rng(0).permutation(20).repeat(3):
        assert backend.get(parquet_uri(file, row)) == ROWS[row]
    assert sorted(reads) == [0, 1, 2, 3]


def test_the_cache_is_bounded_in_bytes(file, reads):
    group = 5 * 1000 + 6 * 4  # images and their offsets
    backend = ParquetBackend(cache_bytes=2 * group)
    for row in (0, 5, 1, 10, 2, 6):  # groups 0 1 0 2 0 1
        backend.get(parquet_uri(file, row))
    assert reads == [0, 1, 2, 1]  # 1 had not been used for longest
    assert sum(x.nbytes for x in backend._groups.values()) <= 2 * group


def test_a_row_group_larger_than_the_bound_is_kept_alone(file, reads):
    backend = ParquetBackend(cache_bytes=1)
    for row in (0, 1, 2, 5, 6):
        backend.get(parquet_uri(file, row))
    assert reads == [0, 1] and len(backend._groups) == 1


def test_a_pickled_backend_starts_afresh(file):
    backend = ParquetBackend(cache_bytes=5)
    backend.get(parquet_uri(file, 0))
    copy = pickle.loads(pickle.dumps(backend))
    assert copy.cache_bytes == 5 and not copy._groups
    assert copy.get(parquet_uri(file, 7)) == ROWS[7]


class Rows(Dataset):
    def __init__(self, path):
        self.path = path

    def __len__(self):
        return len(ROWS)

    def __getitem__(self, i):
        return fileio.get(parquet_uri(self.path, i))


def test_forked_workers_read_right(file):
    """Also when the parent has the file open and a row group in memory."""
    data_set = Rows(file)
    assert data_set[3] == ROWS[3]
    loader = DataLoader(
        data_set, 1, num_workers=2, multiprocessing_context='fork'
    )
    assert [x for (x,) in loader] == ROWS


@pytest.mark.slow
def test_spawned_workers_read_right(file):
    code = f"""
from torch.utils.data import DataLoader
from test_parquet import ROWS, Rows
if __name__ == '__main__':
    loader = DataLoader(
        Rows({str(file)!r}), 1, num_workers=1, multiprocessing_context='spawn'
    )
    assert [x for (x,) in loader] == ROWS
"""
    script = file.with_name('spawn.py')
    script.write_text(code)
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path)))
    subprocess.run([sys.executable, script], check=True, timeout=300, env=env)


def test_images_of_the_datasets_library(tmp_path):
    """A struct of bytes and path instead of bytes."""
    images = [dict(bytes=row, path=f'{i}.png') for i, row in enumerate(ROWS)]
    images[4]['bytes'] = None
    path = tmp_path / 'leaves.parquet'
    pq.write_table(pa.table(dict(image=images)), path)
    assert ParquetBackend().get(parquet_uri(path, 19)) == ROWS[19]
    assert dict(iter_images(path, [3, 4])) == {3: ROWS[3], 4: None}
    with pytest.raises(FileNotFoundError, match='/4: the row holds no image'):
        ParquetBackend().get(parquet_uri(path, 4))


def test_images_are_read_once_in_order(file, monkeypatch):
    groups = []
    batches = ImageColumn.batches
    monkeypatch.setattr(
        ImageColumn,
        'batches',
        lambda self, group: groups.append(group) or batches(self, group),
    )
    found = list(iter_images(file, [19, 3, 16, 1]))
    assert found == [(row, ROWS[row]) for row in (1, 3, 16, 19)]
    assert groups == [0, 3]  # the others hold no row that is wanted


def test_few_rows_of_a_large_row_group_are_in_memory(tmp_path):
    path = tmp_path / 'leaves.parquet'
    images = [bytes([i]) * 100_000 for i in range(200)]
    pq.write_table(
        pa.table(dict(image=images)),
        path,
        use_dictionary=False,
        write_batch_size=10,
    )
    assert pq.ParquetFile(path).metadata.num_row_groups == 1
    before, most = pa.total_allocated_bytes(), 0
    for row, content in iter_images(path, range(200)):
        assert content == images[row]
        most = max(most, pa.total_allocated_bytes() - before)
    assert most < 6_000_000 < len(images) * len(images[0])


def test_a_damaged_file(file):
    content = bytearray(file.read_bytes())
    content[4:4000] = bytes(3996)  # the first row groups
    file.write_bytes(content)
    with pytest.raises(ValueError, match='leaves.*: row group 0 is damaged'):
        list(iter_images(file, range(20)))
    file.write_bytes(content[:-100])
    with pytest.raises(ValueError, match='leaves.parquet is no parquet file'):
        open_parquet(file)


def test_errors(file):
    with pytest.raises(FileNotFoundError, match='/20: the file has 20 rows'):
        fileio.get(parquet_uri(file, 20))
    with pytest.raises(FileNotFoundError):
        fileio.get(parquet_uri(file.with_name('no.parquet'), 0))
    with pytest.raises(ValueError, match='expected parquet:///folder/file'):
        ParquetBackend().get('parquet:///leaves.parquet#3')
    with pytest.raises(ValueError, match="no column 'img'; it has image"):
        ParquetBackend(column='img').get(parquet_uri(file, 0))


def test_without_pyarrow(file, monkeypatch):
    monkeypatch.setitem(sys.modules, 'pyarrow', None)
    with pytest.raises(ImportError, match=r'pip install "mmclca\[parquet\]"'):
        open_parquet(file)


def test_the_inferencer_names_its_pictures_by_row(tmp_path):
    """Rows share a file's name, so a picture must be named for its row."""
    path = tmp_path / 'leaves.parquet'
    images = [trees.png((40, 40, 3), value) for value in (9, 200)]
    pq.write_table(pa.table(dict(image=images)), path)
    inferencer = ImageClassificationInferencer(
        Config.fromfile(write_run(tmp_path)), classes=CLASSES
    )
    shown = tmp_path / 'shown'
    results = inferencer(
        [parquet_uri(path, i) for i in (0, 1)], show_dir=str(shown)
    )
    assert [x['pred_class'] in CLASSES for x in results] == [True, True]
    assert sorted(file.name for file in shown.iterdir()) == ['0.png', '1.png']
