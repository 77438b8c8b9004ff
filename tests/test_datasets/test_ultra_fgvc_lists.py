# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Lists in the ways that people and publishers get them wrong."""

import os

import pytest
import ultra_fgvc_trees as trees

from mmclca.datasets.ultra_fgvc import checks, lists
from mmclca.datasets.ultra_fgvc import folders as layouts
from mmclca.datasets.ultra_fgvc.info import SETS
from mmclca.datasets.ultra_fgvc.places import Source, find_sources

COTTON = SETS['cotton80']


def read(root, info=COTTON, layout=None):
    (source,) = find_sources(root, info, layout)
    images = lists.read_source(source, info)
    classes = lists.class_names(images, info)
    splits = {
        split: [(x.path, x.label) for x in lists.label(listed, classes)]
        for split, listed in lists.divide(images, info).items()
    }
    return splits, checks.is_ordered_differently(images, classes)


def write_anno(root, leaves, splits=('train', 'val', 'test'), base=1):
    (root / 'anno').mkdir(exist_ok=True)
    for split in splits:
        own = [leaf for leaf in leaves if leaf.split == split]
        text = ''.join(f'{x.name} {x.label + base}\n' for x in own)
        (root / 'anno' / f'{split}.txt').write_text(text)


@pytest.mark.parametrize('name', trees.TRUE_LISTS)
def test_labels_of_all_true_lists(shared, name):
    """No image is needed to read a list."""
    leaves = trees.true_leaves(shared, name)
    root = shared / 'data' / 'ufgvc_splits' / trees.TRUE_LISTS[name]
    splits, differ = read(root, SETS[name])
    assert {s: len(x) for s, x in splits.items()} == SETS[name].counts
    labels = {leaf.name: leaf.label for leaf in leaves}
    found = splits['trainval'] + splits['test']
    assert {os.path.basename(path): x for path, x in found} == labels
    assert not differ


def test_lists_do_not_depend_on_their_order(tmp_path):
    leaves = trees.cotton_leaves()
    write_anno(tmp_path, leaves)
    first, _ = read(tmp_path)
    write_anno(tmp_path, leaves[::-1])
    assert read(tmp_path)[0] == first


@pytest.mark.parametrize('base', [0, 1, 2])
def test_the_base_of_labels_does_not_matter(tmp_path, base):
    """The file names tell the class: the usual slip by one is harmless."""
    leaves = trees.cotton_leaves()
    write_anno(tmp_path, leaves, base=base)
    splits, differ = read(tmp_path)
    expected = {leaf.name: leaf.label for leaf in leaves}
    for listed in splits.values():
        for path, label in listed:
            assert expected[os.path.basename(path)] == label
    assert not differ


def test_labels_in_another_order_are_noted(tmp_path):
    leaves = [x._replace(label=79 - x.label) for x in trees.cotton_leaves()]
    write_anno(tmp_path, leaves)
    splits, differ = read(tmp_path)
    assert differ
    assert [label for _, label in splits['val']] == list(range(80))


def test_labels_against_file_names(tmp_path):
    leaves = trees.cotton_leaves()
    leaves[7] = leaves[7]._replace(label=5)
    write_anno(tmp_path, leaves)
    with pytest.raises(ValueError, match=r"disagree in 2 .*6 is \['2', '6'\]"):
        read(tmp_path)


def test_names_that_tell_no_class(tmp_path):
    """Then the label does."""
    leaves = [
        leaf._replace(name=f'scan{i}.png')
        for i, leaf in enumerate(trees.cotton_leaves())
    ]
    write_anno(tmp_path, leaves)
    splits, _ = read(tmp_path)
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
    splits, _ = read(tmp_path)
    counts = {split: len(listed) for split, listed in splits.items()}
    assert counts == COTTON.counts
    (tmp_path / 'anno' / 'val.txt').unlink()
    assert list(read(tmp_path)[0]) == ['trainval', 'test']


def test_a_val_list_that_repeats_the_test_list(tmp_path):
    leaves = trees.cotton_leaves()
    whole = [x._replace(split=x.split.replace('val', 'train')) for x in leaves]
    test = [x._replace(split='val') for x in leaves if x.split == 'test']
    write_anno(tmp_path, whole + test)
    splits, _ = read(tmp_path)
    assert {s: len(x) for s, x in splits.items()} == dict(
        trainval=240, test=240
    )


def test_an_image_in_training_and_test(tmp_path):
    leaves = trees.cotton_leaves()
    write_anno(tmp_path, [*leaves[:-1], leaves[3]._replace(split='train')])
    with pytest.raises(ValueError, match='1 images .* test list, .*1_6_test'):
        read(tmp_path)


def test_bad_lines_of_an_anno_file(tmp_path):
    write_anno(tmp_path, trees.cotton_leaves())
    with open(tmp_path / 'anno' / 'train.txt', 'a') as file:
        file.write('\n81_1_train.png\n82_1_train.png x\n')
    with pytest.raises(ValueError) as error:
        read(tmp_path)
    assert 'train.txt: 2 lines are not' in str(error.value)
    assert 'line 163: 82_1_train.png x' in str(error.value)


@pytest.mark.parametrize(
    'text, message',
    [
        ('label,path\n1,a.png\n', r"columns \['label', 'path'\]; expected"),
        ('class_id,dir\n1.5,a.png\n', 'line 2: a.png 1.5'),
        ('', r'columns \[\]'),
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
    assert len(read(tmp_path)[0]['trainval']) == 480


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
    splits, _ = read(tmp_path, SETS['soyageing_r4'])
    assert {s: len(x) for s, x in splits.items()} == dict(
        trainval=990, test=990
    )
    splits, _ = read(tmp_path, SETS['soyageing'])
    assert {s: len(x) for s, x in splits.items()} == SETS['soyageing'].counts


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
    splits, _ = read(tmp_path)
    assert {s: len(x) for s, x in splits.items()} == COTTON.counts
    for path, label in splits['test']:
        assert int(path.split('/')[-2]) == label + first


@pytest.mark.parametrize(
    'change, message',
    [
        (dict(split='training'), r"split has \['training'\]; expected train"),
        (dict(class_name='3'), 'disagree in 2 cases'),
    ],
)
def test_bad_rows_of_a_parquet_file(tmp_path, change, message):
    leaves = trees.cotton_leaves()
    leaves[0] = leaves[0]._replace(**change)
    path = tmp_path / 'cotton80.parquet'
    trees.write_rows(path, leaves, [b''] * 480)
    with pytest.raises(ValueError, match=message):
        lists.read_source(Source('parquet', ((COTTON, path),)), COTTON)


def test_a_parquet_file_without_a_column(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / 'cotton80.parquet'
    pq.write_table(pa.table(dict(image=[b''], label=[1])), path)
    with pytest.raises(ValueError, match='class_name, split not found'):
        layouts.read_parquet(path, COTTON)
