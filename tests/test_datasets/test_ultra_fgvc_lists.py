# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Lists in the ways that people and publishers get them wrong."""

import os
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import ultra_fgvc_trees as trees

from mmclca.datasets.ultra_fgvc import forms, lists
from mmclca.datasets.ultra_fgvc.info import SETS
from mmclca.datasets.ultra_fgvc.places import find_set
from mmclca.utils.files import read_rows

COTTON = SETS['cotton80']


def read(root, info=COTTON):
    """Paths and labels of each split."""
    images = find_set(root, info).images
    classes = lists.class_names(images, info)
    return {
        split: [(x.path, x.label) for x in lists.label(listed, classes)]
        for split, listed in lists.divide(images, info).items()
    }


def counts(splits):
    return {split: len(listed) for split, listed in splits.items()}


def write_anno(root, leaves, splits=('train', 'val', 'test'), base=1):
    (root / 'anno').mkdir(exist_ok=True)
    for split in splits:
        own = [leaf for leaf in leaves if leaf.split == split]
        text = ''.join(f'{x.name} {x.label + base}\n' for x in own)
        (root / 'anno' / f'{split}.txt').write_text(text)


@pytest.mark.parametrize(
    'name', ['cotton80', 'soylocal', 'soygene', 'soyageing', 'soyglobal']
)
def test_labels_of_all_true_lists(shared, name):
    """No image is needed to read a list."""
    root = shared / 'data/ufgvc_splits' / name.removesuffix('80')
    splits = read(root, SETS[name])
    assert counts(splits) == SETS[name].counts
    found = splits['trainval'] + splits['test']
    listed = read_rows(root / 'train_val.csv') + read_rows(root / 'test.csv')
    assert {os.path.basename(path): x for path, x in found} == {
        os.path.basename(row['dir']): int(row['class_id']) for row in listed
    }


@pytest.mark.parametrize('order', [1, -1])
@pytest.mark.parametrize('base', [0, 1, 2])
def test_order_and_base_of_labels_do_not_matter(tmp_path, base, order):
    """The file names tell the class: the usual slip by one is harmless."""
    leaves = trees.cotton_leaves()
    write_anno(tmp_path, leaves[::order], base=base)
    expected = {leaf.name: leaf.label for leaf in leaves}
    for listed in read(tmp_path).values():
        found = [(os.path.basename(path), label) for path, label in listed]
        assert {*found} <= expected.items()
        assert [x for _, x in found] == sorted(x for _, x in found)
    others = [x._replace(label=79 - x.label) for x in leaves]
    write_anno(tmp_path, others)
    assert [label for _, label in read(tmp_path)['val']] == list(range(80))


def test_labels_against_file_names(tmp_path):
    leaves = trees.cotton_leaves()
    leaves[7] = leaves[7]._replace(label=5)
    write_anno(tmp_path, leaves)
    with pytest.raises(ValueError, match='contradict'):
        read(tmp_path)


def test_names_that_tell_no_class(tmp_path):
    """Then the label does."""
    leaves = [
        leaf._replace(name=f'scan{i}.png')
        for i, leaf in enumerate(trees.cotton_leaves())
    ]
    write_anno(tmp_path, leaves)
    splits = read(tmp_path)
    assert [label for _, label in splits['val']] == list(range(80))
    write_anno(tmp_path, leaves, base=2)
    with pytest.raises(ValueError, match=r'1 classes .* \(1..80\): 81'):
        read(tmp_path)


def test_a_train_list_that_is_the_whole(tmp_path):
    """As where the val list is drawn from it: train is what remains."""
    leaves = trees.cotton_leaves()
    whole = [x._replace(split=x.split.replace('val', 'train')) for x in leaves]
    val = [x for x in leaves if x.split == 'val']
    write_anno(tmp_path, whole + val)
    assert counts(read(tmp_path)) == COTTON.counts
    (tmp_path / 'anno' / 'val.txt').unlink()
    assert list(read(tmp_path)) == ['trainval', 'test']


def test_a_val_list_that_repeats_the_test_list(tmp_path):
    leaves = trees.cotton_leaves()
    whole = [x._replace(split=x.split.replace('val', 'train')) for x in leaves]
    test = [x._replace(split='val') for x in leaves if x.split == 'test']
    write_anno(tmp_path, whole + test)
    assert counts(read(tmp_path)) == dict(trainval=240, test=240)


def test_an_image_in_training_and_test(tmp_path):
    leaves = trees.cotton_leaves()
    write_anno(tmp_path, [*leaves[:-1], leaves[3]._replace(split='train')])
    with pytest.raises(ValueError, match='share 1 images.*1_6_test'):
        read(tmp_path)


def test_bad_lines_of_an_anno_file(tmp_path):
    write_anno(tmp_path, trees.cotton_leaves())
    with open(tmp_path / 'anno' / 'train.txt', 'a') as file:
        file.write('\n81_1_train.png\n82_1_train.png x\n')
    with pytest.raises(ValueError) as error:
        read(tmp_path)
    assert '2 lines differ' in str(error.value)
    assert '163: 82_1_train.png x' in str(error.value)


@pytest.mark.parametrize(
    'text, message',
    [
        ('label,path\n1,a.png\n', 'class_id'),
        ('class_id,dir\n1.5,a.png\n', '2: a.png 1.5'),
        ('', 'class_id'),
    ],
)
def test_bad_csv_files(tmp_path, text, message):
    (tmp_path / 'train.csv').write_text(text)
    with pytest.raises(ValueError, match=message):
        read(tmp_path)


def test_csv_of_a_spreadsheet(tmp_path):
    """A byte order mark, other line ends, more columns in another order."""
    lines = [f'{x.name},7,{x.label}' for x in trees.cotton_leaves()]
    text = '\r\n'.join(['dir,width,class_id', *lines, ''])
    (tmp_path / 'train_val.csv').write_bytes(b'\xef\xbb\xbf' + text.encode())
    assert len(read(tmp_path)['trainval']) == 480


def test_lists_of_one_stage(tmp_path):
    """train_val_R1.csv and test_R1.csv, as the authors' script makes them."""
    for stage in trees.AGES:
        for split in ('train', 'test'):
            rows = [
                f'{x.label},{stage}/images/{x.name}\n'
                for x in trees.ageing_leaves()
                if x.stage == stage
                and ('test' in x.split) == (split == 'test')
            ]
            name = dict(train='train_val', test='test')[split]
            file = tmp_path / f'{name}_{stage}.csv'
            file.write_text('class_id,dir\n' + ''.join(rows))
    splits = read(tmp_path, SETS['soyageing_r4'])
    assert counts(splits) == dict(trainval=990, test=990)
    splits = read(tmp_path, SETS['soyageing'])
    assert counts(splits) == SETS['soyageing'].counts


@pytest.mark.parametrize('name', ['{}', '{:03d}'])
@pytest.mark.parametrize('first', [0, 1])
def test_class_folders_count_from_either_end(tmp_path, name, first):
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
    'change, message',
    [
        (dict(split='training'), 'training'),
        (dict(class_name='3'), 'contradict'),
    ],
)
def test_bad_rows_of_a_parquet_file(tmp_path, change, message):
    leaves = trees.cotton_leaves()
    leaves[0] = leaves[0]._replace(**change)
    trees.write_rows(tmp_path / 'cotton80.parquet', leaves, [b''] * 480)
    with pytest.raises(ValueError, match=message):
        read(tmp_path)


def test_parquet_files_that_cannot_be_read(tmp_path, monkeypatch):
    path, images = tmp_path / 'cotton80.parquet', [b'x' * 99] * 480
    pq.write_table(pa.table(dict(image=[b''], label=[1])), path)
    with pytest.raises(ValueError, match='class_name'):
        read(path)
    trees.write_rows(path, trees.cotton_leaves(), images, row_group_size=9)
    content = bytearray(path.read_bytes())
    content[900:4000] = bytes(3100)  # the first row groups
    path.write_bytes(content)
    with pytest.raises(ValueError, match='cotton80.* is damaged from row 16 '):
        list(forms.parquet_images(path))
    path.write_bytes(content[:-100])
    with pytest.raises(ValueError, match='cotton80.parquet'):
        read(path)
    monkeypatch.setitem(sys.modules, 'pyarrow', None)
    with pytest.raises(ImportError, match=r'pip install "mmclca\[parquet\]"'):
        read(path)


def test_images_of_the_datasets_library(tmp_path):
    """A struct of bytes and path instead of bytes."""
    rows = [bytes([i]) * 100_000 for i in range(90)]
    images = [dict(bytes=row, path=f'{i}.png') for i, row in enumerate(rows)]
    images[4]['bytes'] = rows[4] = None
    path, options = tmp_path / 'leaves.parquet', dict(write_batch_size=10)
    table = pa.table(dict(image=images))
    pq.write_table(table, path, use_dictionary=False, **options)
    before, most = pa.total_allocated_bytes(), 0
    for i, found in enumerate(forms.parquet_images(path)):
        assert found == (f'{path}/{i}', rows[i])
        most = max(most, pa.total_allocated_bytes() - before)
    assert i == 89 and most < 5_000_000  # of 9 MB in one row group


def test_a_text_in_a_parquet_file_is_not_opened(tmp_path):
    path = tmp_path / 'cotton80.parquet'
    trees.write_rows(path, trees.cotton_leaves(), ['/etc/hostname'] * 480)
    with pytest.raises(ValueError, match='row 0 .*found text'):
        list(forms.parquet_images(path))
