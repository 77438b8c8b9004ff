# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Classes and folders that differ in order, number and spelling."""

import pytest
from mmengine.config import Config
from mmpretrain.registry import DATASETS
from tiny_run import CLASSES, write_images

from mmclca.datasets import ClassFolders, match_by_name

MARK = b'\xef\xbb\xbf'


@pytest.fixture
def data(tmp_path):
    write_images(tmp_path / 'data', per_class=1, size=8)
    return tmp_path / 'data'


def labels_of(dataset):
    infos = map(dataset.get_data_info, range(len(dataset)))
    return {x['img_path'].split('/')[-2]: x['gt_label'] for x in infos}


def test_labels_follow_the_list_if_its_order_differs(data, tmp_path):
    names = ['yew', *reversed(CLASSES)]
    text = '\r\n'.join([*names, '', ''])
    (tmp_path / 'c.txt').write_bytes(MARK + text.encode())
    dataset = ClassFolders(
        data_root=str(data), classes=str(tmp_path / 'c.txt')
    )
    assert [*dataset.CLASSES] == names
    assert labels_of(dataset) == {x: names.index(x) for x in CLASSES}


@pytest.mark.parametrize('names', [CLASSES[1:], ['a', 'b', 'c', 'd']])
def test_folder_is_named_if_the_list_lacks_it(data, names):
    with pytest.raises(ValueError, match='ash'):
        ClassFolders(data_root=str(data), classes=names)


def test_name_is_refused_if_the_list_repeats_it(data):
    with pytest.raises(ValueError, match='once'):
        ClassFolders(data_root=str(data), classes=[*CLASSES, 'ash '])


def test_system_folders_are_skipped(data):
    for folder in ('.ipynb_checkpoints', '@eaDir/a', 'ash/@eaDir'):
        (data / folder).mkdir(parents=True)
        (data / folder / '0.png').write_bytes(b'')
    dataset = ClassFolders(data_root=str(data))
    assert dataset.CLASSES == CLASSES
    assert len(dataset) == 4


def test_composed_and_decomposed_names_are_one_class(data):
    (data / 'ash').rename(data / 'Mo\u0308hre')
    names = ['M\xf6hre', *CLASSES[1:]]
    assert len(ClassFolders(data_root=str(data), classes=names)) == 4


def test_list_of_images_may_have_a_mark_and_tabs(data):
    (data / 'a.txt').write_bytes(MARK + b'ash/0.png\t0\r\n\r\noak/0.png  3\n')
    dataset = ClassFolders(data_root=str(data), ann_file='a.txt')
    assert labels_of(dataset) == dict(ash=0, oak=3)
    (data / 'b.txt').write_bytes(MARK + b'ash/0.png\n\n')
    dataset = ClassFolders(
        data_root=str(data), ann_file='b.txt', with_label=False
    )
    assert dataset.get_data_info(0)['img_path'].endswith('data/ash/0.png')


@pytest.mark.parametrize('line', ['oak/0.png 4', 'oak/0.png', 'oak/0.png x'])
def test_line_is_named_if_it_has_no_label(data, line):
    (data / 'a.txt').write_text(f'ash/0.png 0\n{line}\n')
    with pytest.raises(ValueError, match='2: oak/0.png'):
        ClassFolders(
            data_root=str(data), ann_file='a.txt', classes=list(CLASSES)
        )


def test_place_is_named_if_it_has_no_images(tmp_path):
    with pytest.raises(ValueError, match=tmp_path.name):
        ClassFolders(data_root=str(tmp_path))
    (tmp_path / 'a.txt').write_text('\n')
    with pytest.raises(ValueError, match='a.txt'):
        ClassFolders(data_root=str(tmp_path), ann_file='a.txt')


def test_datasets_are_matched_at_all_depths(data):
    inner = dict(type='CustomDataset', data_root=str(data))
    settings = Config(dict(type='RepeatDataset', times=2, dataset=inner))
    found = match_by_name(settings._cfg_dict)
    assert isinstance(DATASETS.build(found).dataset, ClassFolders)
    assert settings.dataset.type == 'CustomDataset'
