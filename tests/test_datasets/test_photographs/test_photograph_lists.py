# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from mmengine import list_from_file
from mmengine.registry import init_default_scope
from mmpretrain.datasets import CustomDataset

from mmclca.datasets.photographs import read_photographs
from mmclca.datasets.photographs.lists import lines_of_lists, write_lists


def files_of(photographs, folder):
    """Lists of absolute paths, as fit writes them, by name."""
    lists = lines_of_lists(photographs, folder, relative=False)
    write_lists(lists, force=True)
    return {file.stem: file for file in lists}


def test_mmpretrain_reads_the_lists(paint, tmp_path):
    photos = tmp_path / 'my photos'
    for split, label, name in (
        ('train', 'rose', ' a 1.png'),
        ('train', 'tulip', 'b.png'),
        ('val', 'tulip', 'c 0.png'),
    ):
        paint(f'my photos/{split}/{label}/{name}', 0)
    found = read_photographs(photos)
    files = files_of(found, tmp_path / 'new/lists')
    assert list(files) == ['classes', 'train', 'val']
    assert list_from_file(files['classes']) == ['rose', 'tulip']
    init_default_scope('mmpretrain')
    read = []
    for name in ('train', 'val'):
        data = CustomDataset(
            ann_file=str(files[name]),
            metainfo=dict(classes=str(files['classes'])),
            pipeline=[dict(type='mmclca.LoadPhotograph')],
            serialize_data=False,
        )
        assert data.CLASSES == ['rose', 'tulip']
        read += [(x['img_path'], x['gt_label'], x['img'].shape) for x in data]
    shape = (30, 40, 3)
    pairs = zip(found.paths, found.labels, strict=True)
    assert read == [(path, label, shape) for path, label in pairs]


def test_photographs_of_no_split_are_trained_on(paint, tmp_path):
    for name in ('rose/a.png', 'tulip/b.png'):
        paint(name, 0)
    found = read_photographs(tmp_path)
    files = files_of(found, tmp_path)
    assert list(files) == ['classes', 'train']
    assert list_from_file(files['train']) == [
        f'{tmp_path}/rose/a.png 0',
        f'{tmp_path}/tulip/b.png 1',
    ]
