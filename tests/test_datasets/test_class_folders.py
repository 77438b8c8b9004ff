# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Folders and class lists in different order, number and spelling."""

from unittest.mock import Mock

import pytest
from mmengine.config import Config
from mmpretrain.datasets import CustomDataset
from mmpretrain.registry import DATASETS
from tiny_run import CLASSES, write_images

from mmclca.datasets import ClassFolders, match_by_name
from mmclca.datasets.class_folders import check_folder_labels

MARK = b'\xef\xbb\xbf'


@pytest.fixture
def data(tmp_path):
    write_images(tmp_path / 'data', per_class=1, size=8)
    return tmp_path / 'data'


def labels_of(dataset):
    infos = map(dataset.get_data_info, range(len(dataset)))
    return {x['img_path'].split('/')[-2]: x['gt_label'] for x in infos}


def test_labels_follow_class_list(data, tmp_path):
    (data / 'ash').rename(data / 'Mo\u0308hre')  # another normalization
    names = ['yew', *CLASSES[:0:-1], 'M\xf6hre']
    content = '\r\n'.join([*names, '', ''])
    (tmp_path / 'c.txt').write_bytes(MARK + content.encode())
    dataset = ClassFolders(
        data_root=str(data), classes=str(tmp_path / 'c.txt')
    )
    assert [*dataset.CLASSES] == names
    assert sorted(labels_of(dataset).values()) == [1, 2, 3, 4]
    assert labels_of(dataset)[CLASSES[1]] == names.index(CLASSES[1])


@pytest.mark.parametrize(
    'settings, line, term',
    [
        (dict(classes=CLASSES[1:]), None, 'ash'),
        (dict(classes=[*CLASSES, 'ash ']), None, 'once'),
        (dict(classes=CLASSES), 'oak/0.png 4', '2: oak/0.png'),
        (dict(classes=CLASSES), 'oak/0.png x', '2: oak/0.png'),
        (dict(data_prefix='../empty'), None, 'empty'),
        ({}, '', 'a.txt'),
    ],
)
def test_folders_and_lists_are_refused(data, settings, line, term):
    (data.parent / 'empty').mkdir()
    if line is not None:
        first = 'ash/0.png 0\n' if line else ''
        (data / 'a.txt').write_text(f'{first}{line}\n')
        settings = dict(settings, ann_file='a.txt')
    with pytest.raises((FileNotFoundError, ValueError), match=term):
        ClassFolders(data_root=str(data), **settings)


def test_system_folders_are_skipped(data):
    for folder in ('.ipynb_checkpoints', '@eaDir/a', 'ash/@eaDir'):
        (data / folder).mkdir(parents=True)
        (data / folder / '0.png').write_bytes(b'')
    dataset = ClassFolders(data_root=str(data))
    assert dataset.CLASSES == CLASSES
    assert len(dataset) == 4


def test_list_may_have_a_byte_order_mark_and_tabs(data):
    (data / 'a.txt').write_bytes(MARK + b'ash/0.png\t0\r\n\r\noak/0.png  3\n')
    dataset = ClassFolders(data_root=str(data), ann_file='a.txt')
    assert labels_of(dataset) == dict(ash=0, oak=3)
    (data / 'b.txt').write_bytes(MARK + b'ash/0.png\n\n')
    dataset = ClassFolders(
        data_root=str(data), ann_file='b.txt', with_label=False
    )
    assert dataset.get_data_info(0)['img_path'].endswith('data/ash/0.png')


def test_custom_dataset_is_refused_if_labels_do_not_fit_the_head(data):
    def check(num_classes, **settings):
        dataset = CustomDataset(data_root=str(data), **settings)
        check_folder_labels(dataset, Mock(num_classes=num_classes))

    (data / 'a.txt').write_text('oak/0.png 3\n')
    check(4, ann_file='a.txt')
    check(4, classes=CLASSES)
    with pytest.raises(ValueError, match='label 3'):
        check(3, ann_file='a.txt')
    with pytest.raises(ValueError, match='ClassFolders'):
        check(4, classes=CLASSES[::-1])


def test_match_by_name_replaces_datasets_at_all_depths(data):
    inner = dict(type='CustomDataset', data_root=str(data))
    settings = Config(dict(type='RepeatDataset', times=2, dataset=inner))
    replaced = match_by_name(settings._cfg_dict)
    assert isinstance(DATASETS.build(replaced).dataset, ClassFolders)
    assert settings.dataset.type == 'CustomDataset'
