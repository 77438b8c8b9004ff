# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Lists with common mistakes are read correctly or refused."""

import os
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import ultra_fgvc_trees as trees

from mmclca.datasets.ultra_fgvc import layouts, lists
from mmclca.datasets.ultra_fgvc.importing import find_set, list_labeled_images
from mmclca.datasets.ultra_fgvc.info import SETS
from mmclca.utils.files import read_rows

COTTON = SETS['cotton80']
LEAVES = trees.cotton_leaves()
WHOLE = [x._replace(split=x.split.replace('val', 'train')) for x in LEAVES]


def read(root, info=COTTON):
    """Paths and labels per split."""
    images = find_set(root, info).images
    classes = lists.list_classes(images, info)
    return {
        split: [
            (x.path, x.label) for x in lists.label_images(in_split, classes)
        ]
        for split, in_split in lists.divide(images, info).items()
    }


def counts(splits):
    return {split: len(in_split) for split, in_split in splits.items()}


def labels(splits, split='val'):
    return [label for _, label in splits[split]]


def write_anno(root, leaves, base=1):
    (root / 'anno').mkdir(exist_ok=True)
    for split in ('train', 'val', 'test'):
        in_split = [leaf for leaf in leaves if leaf.split == split]
        content = ''.join(f'{x.name} {x.label + base}\n' for x in in_split)
        (root / 'anno' / f'{split}.txt').write_text(content)


@pytest.mark.parametrize(
    'name', ['cotton80', 'soylocal', 'soygene', 'soyageing', 'soyglobal']
)
def test_labels_of_released_lists_equal_class_ids(shared, name):
    root = shared / 'data/ufgvc_splits' / name.removesuffix('80')
    splits = read(root, SETS[name])
    assert counts(splits) == SETS[name].counts
    found = splits['trainval'] + splits['test']
    in_split = read_rows(root / 'train_val.csv') + read_rows(root / 'test.csv')
    assert {os.path.basename(path): x for path, x in found} == {
        os.path.basename(row['dir']): int(row['class_id']) for row in in_split
    }


@pytest.mark.parametrize('base, order', [(0, 1), (1, -1), (2, 1)])
def test_labels_do_not_depend_on_order_and_base(tmp_path, base, order):
    write_anno(tmp_path, LEAVES[::order], base=base)
    expected = {leaf.name: leaf.label for leaf in LEAVES}
    for in_split in read(tmp_path).values():
        found = [(os.path.basename(path), label) for path, label in in_split]
        assert {*found} <= expected.items()
        assert [x for _, x in found] == sorted(x for _, x in found)
    write_anno(tmp_path, [x._replace(label=79 - x.label) for x in LEAVES])
    assert labels(read(tmp_path)) == list(range(80))


def test_labels_name_classes_if_file_names_do_not(tmp_path):
    leaves = [x._replace(name=f's{i}.png') for i, x in enumerate(LEAVES)]
    write_anno(tmp_path, leaves)
    assert labels(read(tmp_path)) == list(range(80))
    write_anno(tmp_path, leaves, base=2)
    with pytest.raises(ValueError, match='81'):
        read(tmp_path)


def test_divide_accepts_the_whole_as_train_list(tmp_path):
    write_anno(tmp_path, LEAVES)
    assert len(list_labeled_images(find_set(tmp_path, COTTON), COTTON)) == 480
    write_anno(tmp_path, WHOLE + [x for x in LEAVES if x.split == 'val'])
    assert counts(read(tmp_path)) == COTTON.counts
    test = [x._replace(split='val') for x in LEAVES if x.split == 'test']
    write_anno(tmp_path, WHOLE + test)
    assert counts(read(tmp_path)) == dict(trainval=240, test=240)
    (tmp_path / 'anno' / 'val.txt').unlink()
    assert list(read(tmp_path)) == ['trainval', 'test']


@pytest.mark.parametrize(
    'leaf, term',
    [
        (LEAVES[7]._replace(label=5), 'contradict'),
        (LEAVES[3]._replace(split='train'), '1_6_test'),
    ],
)
def test_contradicting_lists_are_refused(tmp_path, leaf, term):
    write_anno(tmp_path, [*LEAVES, leaf])
    with pytest.raises(ValueError, match=term):
        read(tmp_path)


@pytest.mark.parametrize(
    'content, term',
    [
        ('label,path\n1,a.png\n', 'class_id'),
        ('class_id,dir\n1.5,a.png\n', "line 2: .*'1.5' and 'a.png'"),
    ],
)
def test_invalid_csv_is_refused(tmp_path, content, term):
    (tmp_path / 'train.csv').write_text(content)
    with pytest.raises(ValueError, match=term):
        read(tmp_path)


def test_csv_of_a_spreadsheet_is_read(tmp_path):
    lines = [f'{x.name},7,{x.label}' for x in LEAVES]
    content = '\r\n'.join(['dir,width,class_id', *lines, ''])
    (tmp_path / 'train_val.csv').write_bytes(
        b'\xef\xbb\xbf' + content.encode()
    )
    assert len(read(tmp_path)['trainval']) == 480


def test_csv_lists_per_stage_are_read(tmp_path):
    """The script of the CLCA authors writes train_val_R1.csv, test_R1.csv."""
    leaves = trees.ageing_leaves()
    for stage in trees.AGES:
        for name, splits in dict(
            train_val=('train', 'val'), test=('test',)
        ).items():
            rows = [
                f'{x.label},{stage}/images/{x.name}\n'
                for x in leaves
                if x.stage == stage and x.split in splits
            ]
            file = tmp_path / f'{name}_{stage}.csv'
            file.write_text('class_id,dir\n' + ''.join(rows))
    splits = read(tmp_path, SETS['soyageing_r4'])
    assert counts(splits) == dict(trainval=990, test=990)
    splits = read(tmp_path, SETS['soyageing'])
    assert counts(splits) == SETS['soyageing'].counts


@pytest.mark.parametrize('name, first', [('{}', 0), ('{:03d}', 1)])
def test_class_folders_may_count_from_0_or_1(tmp_path, name, first):
    for split, k in dict(train=2, val=1, test=3).items():
        for c in range(80):
            folder = tmp_path / split / name.format(c + first)
            folder.mkdir(parents=True)
            for i in range(k):
                (folder / f'leaf{i}.JPG').touch()
            (folder / 'Thumbs.db').touch()
    splits = read(tmp_path)
    assert counts(splits) == COTTON.counts
    for path, label in splits['test']:
        assert int(path.split('/')[-2]) == label + first


@pytest.mark.parametrize(
    'change, term',
    [
        (dict(split='training'), 'training'),
        (dict(class_name='3'), 'contradict'),
    ],
)
def test_invalid_parquet_rows_are_refused(tmp_path, change, term):
    leaves = [LEAVES[0]._replace(**change), *LEAVES[1:]]
    trees.write_rows(tmp_path / COTTON.parquet, leaves, [b''] * 480)
    with pytest.raises(ValueError, match=term):
        read(tmp_path)


def test_damaged_parquet_files_are_refused(tmp_path, monkeypatch):
    path, images = tmp_path / 'cotton80.parquet', [b'x' * 99] * 480
    pq.write_table(pa.table(dict(image=[b''], label=[1])), path)
    with pytest.raises(ValueError, match='class_name'):
        read(path)
    trees.write_rows(path, LEAVES, images, row_group_size=9)
    content = bytearray(path.read_bytes())
    content[900:4000] = bytes(3100)  # the first row groups
    path.write_bytes(content)
    with pytest.raises(ValueError, match='damaged'):
        list(layouts.read_parquet_images(path))
    path.write_bytes(content[:-100])
    with pytest.raises(ValueError, match='damaged'):
        read(path)
    monkeypatch.setitem(sys.modules, 'pyarrow', None)
    with pytest.raises(ImportError, match=r'mmclca\[parquet\]'):
        read(path)


def test_parquet_images_of_the_datasets_library_are_read_in_batches(tmp_path):
    rows = [bytes([i]) * 100_000 for i in range(90)]
    images = [dict(bytes=row, path=f'{i}.png') for i, row in enumerate(rows)]
    images[4]['bytes'] = rows[4] = None
    path, options = tmp_path / 'leaves.parquet', dict(write_batch_size=10)
    table = pa.table(dict(image=images))
    pq.write_table(table, path, use_dictionary=False, **options)
    before, peak = pa.total_allocated_bytes(), 0
    for i, row in enumerate(layouts.read_parquet_images(path)):
        assert row == (f'{path}/{i}', rows[i])
        peak = max(peak, pa.total_allocated_bytes() - before)
    assert i == 89 and peak < 5_000_000  # 9 MB in one row group


def test_text_in_a_parquet_file_is_not_opened_as_a_path(tmp_path):
    path = tmp_path / 'cotton80.parquet'
    trees.write_rows(path, LEAVES[:1], ['/etc/hostname'])
    with pytest.raises(ValueError, match='row 0: .*found str'):
        list(layouts.read_parquet_images(path))
