# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Datasets with coarse classes, in the form of their release."""

import json
import pickle

import pytest
from PIL import Image

from mmclca.datasets.levels import read_level
from mmclca.errors import Error
from mmclca.registry import DATASETS

TABLE = 'class,genus,family\noak,Quercus,Fagaceae\nelm,Ulmus,Ulmaceae\n'
TABLE += 'beech,Fagus,Fagaceae\n'


def build(dataset_type, **settings):
    return DATASETS.build(
        dict(type=f'mmclca.{dataset_type}', pipeline=[], **settings)
    )


def labels_of(dataset, name='gt_label'):
    return [info[name] for info in map(dataset.get_data_info, range(3))]


@pytest.fixture
def leaves(tmp_path):
    """Settings for a dataset with one image in each of three classes."""
    (tmp_path / 'levels.csv').write_text(TABLE)
    for name in ('beech', 'elm', 'oak'):
        (tmp_path / 'images' / name).mkdir(parents=True)
        Image.new('RGB', (8, 8)).save(tmp_path / 'images' / name / '0.png')
    root, table = tmp_path / 'images', tmp_path / 'levels.csv'
    return dict(data_root=str(root), levels=str(table))


def test_coarse_dataset_has_the_classes_of_a_level(leaves):
    genus = build('CoarseDataset', **leaves)
    family = build('CoarseDataset', level='family', **leaves)
    assert genus.CLASSES == ('Fagus', 'Quercus', 'Ulmus')
    assert family.CLASSES == ('Fagaceae', 'Ulmaceae')
    assert labels_of(family) == [0, 1, 0]
    assert labels_of(family, 'fine_label') == [0, 1, 2]


@pytest.mark.parametrize(
    ('table', 'level', 'term'),
    [
        (TABLE, 'order', 'genus, family'),
        ('class\noak\n', None, 'level'),
        (f'{TABLE}oak,Robur,Fagaceae\n', None, 'Quercus.*Robur'),
        (TABLE.replace('elm', 'fir'), None, 'elm'),
        (f'{TABLE}fir,Abies\n', None, 'fir'),
        (f'{TABLE}fir,,Pinaceae\n', None, 'fir'),
    ],
)
def test_coarse_dataset_refuses_table(leaves, table, level, term):
    with open(leaves['levels'], 'w') as file:
        file.write(table)
    with pytest.raises(ValueError, match=term) as error:
        build('CoarseDataset', level=level, **leaves)
    assert '\n' not in str(error.value)


def test_read_level_accepts_tables_of_any_program(tmp_path):
    table = tmp_path / 'levels.csv'
    text = 'sep=;\nclass;genus\nMöhre;Daucus\nRübe;Brassica\n;;\n'
    table.write_bytes(text.encode('cp1252'))
    assert read_level(table) == dict(Möhre='Daucus', Rübe='Brassica')


def test_inaturalist_has_the_classes_of_a_level(tmp_path):
    kinds = dict(family=['A', 'B', 'A'], name=['x', 'y', 'z'])
    categories = [
        dict(id=i, **{level: kinds[level][i] for level in kinds})
        for i in range(3)
    ]
    (tmp_path / 'categories.json').write_text(json.dumps(categories))
    images = [dict(id=7 + i, file_name=f'{i}.jpg') for i in range(3)]
    pairs = [dict(image_id=9 - i, category_id=i) for i in range(3)]
    content = json.dumps(dict(images=images, annotations=pairs))
    (tmp_path / 'val.json').write_text(content)
    files = dict(data_root=str(tmp_path), ann_file='val.json')
    assert labels_of(build('INaturalist', **files)) == [0, 1, 2]
    families = build('INaturalist', level='family', **files)
    assert labels_of(families) == [0, 1, 0] and families.CLASSES == ('A', 'B')
    assert families.get_data_info(0)['img_path'] == str(tmp_path / '2.jpg')
    with pytest.raises(ValueError, match='family, id, name'):
        build('INaturalist', level='genus', **files)
    (tmp_path / 'val.json').write_text(json.dumps(dict(images=images)))
    with pytest.raises(ValueError, match='annotations'):
        build('INaturalist', **files)


@pytest.mark.parametrize(
    'file, content, term',
    [
        ('categories.json', '[{"id": 1', 'not valid JSON'),
        ('categories.json', '{"id": 1}', 'not a list of categories'),
        ('categories.json', '[{"name": "a"}]', 'without an id'),
        ('a.json', '[]', 'a.json does not list'),
        ('a.json', '{"images": [{"id": 1}], "annotations": []}', 'file_name'),
    ],
)
def test_inaturalist_refuses_file_if_it_has_another_structure(
    tmp_path, file, content, term
):
    (tmp_path / 'categories.json').write_text('[{"id": 1, "name": "a"}]')
    (tmp_path / 'a.json').write_text('{"images": [], "annotations": []}')
    (tmp_path / file).write_text(content)
    with pytest.raises(Error, match=term):
        build('INaturalist', data_root=str(tmp_path), ann_file='a.json')


def test_cifar_has_coarse_classes(tmp_path, monkeypatch):
    folder = tmp_path / 'cifar-100-python'
    folder.mkdir()
    batch = dict(data=[[0] * 3072] * 3, fine_labels=[5, 6, 7])
    names = dict(coarse_label_names=['a', 'b'])
    dataset_class = DATASETS.get('mmclca.CoarseCIFAR100')
    for name in ('train_list', 'test_list'):
        monkeypatch.setattr(dataset_class, name, [[name[:-5], None]])
    monkeypatch.setattr(
        dataset_class, 'meta', dict(dataset_class.meta, md5=None)
    )
    for name in ('train', 'test'):
        coarse = dict(coarse_labels=[1, 0, 1]) if name == 'train' else {}
        (folder / name).write_bytes(pickle.dumps({**batch, **coarse}))
    (folder / 'meta').write_bytes(pickle.dumps(names))
    dataset = build('CoarseCIFAR100', data_root=str(tmp_path))
    assert labels_of(dataset) == [1, 0, 1] and len(dataset.CLASSES) == 2
    assert labels_of(dataset, 'fine_label') == [5, 6, 7]
    with pytest.raises(ValueError, match='coarse_labels'):
        build('CoarseCIFAR100', data_root=str(tmp_path), split='test')
