# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pickle
import re
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import ultra_fgvc_trees as trees

from mmclca.datasets.ultra_fgvc import UltraFGVC
from mmclca.datasets.ultra_fgvc.importing import import_set, listed_images
from mmclca.datasets.ultra_fgvc.info import SETS, SPLITS, get_info
from mmclca.datasets.ultra_fgvc.places import find_set
from mmclca.registry import DATASETS

FORMS = ('csv', 'released', 'folders', 'parquet')
LEAVES = dict(
    cotton80=[x for x in trees.cotton_leaves() if x.label < 15],
    soygene=trees.gene_leaves(),
    soyageing=trees.ageing_leaves(4),
)


def load(*args, **kwargs):
    # Serializing collects garbage first, which takes longer than all else.
    return UltraFGVC(*args, serialize_data=False, **kwargs)


@pytest.fixture(scope='module')
def forms(tmp_path_factory):
    """Each set in each form: ``NAME/FORM``."""
    root = tmp_path_factory.mktemp('forms')
    for name, leaves in LEAVES.items():
        for form in FORMS:
            trees.write(form, root / name / form, name, leaves)
    return root


def name_and_label(data_set):
    return [
        (item['img_path'].rsplit('/', 1)[1], item['gt_label'])
        for item in map(data_set.get_data_info, range(len(data_set)))
    ]


def wanted(leaves, split):
    splits = ('train', 'val') if split == 'trainval' else (split,)
    return {(x.name, x.label) for x in leaves if x.split in splits}


@pytest.mark.parametrize('form', FORMS)
@pytest.mark.parametrize('name', LEAVES)
def test_every_form_is_imported_as_it_was(forms, tmp_path, form, name):
    """Names, labels and splits before and after, images byte for byte."""
    info, leaves = get_info(name), LEAVES[name]
    found = find_set(forms / name / form, info)
    assert found.form == form
    before = listed_images(found, info, counts=False)
    after = import_set(found, info, tmp_path / name, counts=False)
    assert before == after
    for split in SPLITS:
        expected = wanted(leaves, split)
        new = load(name, split, tmp_path, check_counts=False)
        assert new.where.startswith('csv at ') and len(new) == len(expected)
        labels = Counter(label for _, label in expected)
        assert Counter(new.get_gt_labels()) == labels
        if form != 'parquet':  # the mirror keeps no names
            assert set(name_and_label(new)) == expected
        if form in ('csv', 'released'):
            old = load(name, split, forms / name / form, check_counts=False)
            assert name_and_label(old) == name_and_label(new)
            assert old.CLASSES == new.CLASSES
    image = Path(new.get_data_info(0)['img_path'])
    assert image.read_bytes() == trees.png()
    assert [x.name for x in tmp_path.iterdir()] == [name]
    again = import_set(
        find_set(tmp_path, info), info, tmp_path / 'again', counts=False
    )
    assert [x[1:] for x in again] == [
        x._replace(given=str(x.label))[1:] for x in after
    ] or form == 'parquet'


@pytest.mark.parametrize('form', FORMS)
@pytest.mark.parametrize('name', ['SoyAgeing-R3', 'soyageing_r6'])
def test_a_stage_of_soyageing(forms, tmp_path, name, form):
    info, stage = get_info(name), name[-2:].upper()
    root, part = forms / 'soyageing' / form, dict(check_counts=False)
    import_set(find_set(root, info), info, tmp_path / info.name, False)
    roots = [tmp_path] + [root] * (form in ('csv', 'released'))
    for root in roots:
        data_set = load(name, 'trainval', root, **part)
        assert Counter(data_set.get_gt_labels()) == dict.fromkeys(range(4), 5)
        if form != 'parquet':
            leaves = [x for x in LEAVES['soyageing'] if x.stage == stage]
            assert set(name_and_label(data_set)) == wanted(leaves, 'trainval')


def test_builds_from_a_config_and_is_copied_for_a_worker(forms):
    root = forms / 'cotton80/csv'
    data_set = DATASETS.build(
        dict(
            type='mmclca.UltraFGVC',
            dataset='cotton80',
            split='test',
            data_root=str(root),
            pipeline=[dict(type='LoadImageFromFile'), dict(type='PackInputs')],
            test_mode=True,
            check_counts=False,
        )
    )
    sample = data_set[5]
    assert sample['inputs'].shape == (3, 4, 4)
    assert sample['data_samples'].gt_label.item() == 1
    assert tuple(str(i) for i in range(1, 81)) == data_set.CLASSES
    assert 'Cotton80, test' in repr(data_set)
    assert f'csv at {root}' in repr(data_set)
    copy = pickle.loads(pickle.dumps(data_set))
    assert name_and_label(copy) == name_and_label(data_set)
    assert copy.metainfo == data_set.metainfo


@pytest.mark.parametrize(
    'name, source, folder',
    [
        ('cotton80', 'cotton80/released', 'cotton'),
        ('Cotton80', 'cotton80/released', 'COTTON'),
        ('cotton80', 'cotton80/csv', 'Cotton_80'),
        ('cotton80', 'cotton80/released', 'Cotton80/COTTON'),
        ('soyageing_r3', 'soyageing/released/R3', 'R3'),
        ('soyageing_r3', 'soyageing/released/R3', 'SoyAgeing/R3'),
        ('soyageing_r3', 'soyageing/released/R3', 'soybean_aging_R3'),
        ('SoyAgeing', 'soyageing/released', 'soy_aging'),
    ],
)
def test_folder_names_that_people_have(forms, tmp_path, name, source, folder):
    place = tmp_path / folder
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(forms / source)
    data_set = load(name, 'test', tmp_path, check_counts=False)
    stages = trees.AGES if name == 'SoyAgeing' else ['']
    places = ', '.join(str(place / stage) for stage in stages)
    form = source.split('/')[1]
    assert data_set.where == f'{form} at {places}'
    other = 'soyageing' if name == 'soyageing_r3' else 'soygene'
    with pytest.raises(FileNotFoundError, match='was not found'):
        load(other, 'test', tmp_path)


@pytest.mark.parametrize(
    'form, place, target',
    [
        ('parquet', '', 'cotton80'),
        ('parquet', 'cotton80_dataset.parquet', 'cotton80'),
        ('parquet', 'datasets/ufgvc', 'cotton80'),  # as `hf download` puts it
        ('folders', 'cotton80', 'cotton80/cotton80'),
    ],
)
def test_other_forms_are_to_be_imported(forms, tmp_path, form, place, target):
    """The error has the command; what it makes is found after it."""
    source = next((forms / 'cotton80' / form).glob('*.parquet'), None)
    link = tmp_path / place
    if source:
        link = link if link.suffix else link / source.name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(source or forms / 'cotton80' / form)
    root = link if place.endswith('parquet') else tmp_path
    with pytest.raises(FileNotFoundError) as error:
        load('cotton80', 'test', root)
    assert f'{form} at ' in str(error.value)
    command = f'import {root} --dataset cotton80 --to {tmp_path}/{target}'
    assert command in str(error.value)


@pytest.mark.parametrize(
    'options, message',
    [
        (dict(dataset='cotton'), 'dataset'),
        (dict(dataset='soyageing_r2'), 'soyageing_r1, soyageing_r3'),
        (dict(split='Test'), 'split'),
        (dict(layout='csv'), 'layout'),
    ],
)
def test_unknown_names(tmp_path, options, message):
    options = dict(dataset='cotton80', data_root=tmp_path) | options
    with pytest.raises((TypeError, ValueError), match=message):
        load(**options)


def test_every_spelling_of_a_name():
    for name in (
        'SoyAgeing-R1',
        'soyageing_r1',
        'SOYAGEINGR1',
        'SoyAgeing R1',
    ):
        assert get_info(name).name == 'soyageing_r1'
    assert {get_info(info.title).name for info in SETS.values()} == set(SETS)


def test_a_set_that_is_not_there(tmp_path):
    (tmp_path / 'COTTON').mkdir()
    data_set = load('cotton80', data_root=tmp_path, lazy_init=True)
    with pytest.raises(FileNotFoundError) as error:
        len(data_set)
    message = str(error.value)
    assert f'{tmp_path}/COTTON\n' in message and f'{tmp_path}\n' in message
    assert 'anno/train.txt' in message
    assert 'cotton80_dataset.parquet' in message
    assert f'download cotton80 --to {tmp_path}' in message


def test_a_part_of_a_set(tmp_path):
    leaves = [x for x in trees.cotton_leaves() if x.label in (2, 78)]
    trees.write('csv', tmp_path, 'cotton80', leaves)
    with pytest.raises(ValueError) as error:
        load('cotton80', data_root=tmp_path)
    assert re.search('found 2 classes .*expected 80', str(error.value))
    assert 'check_counts=False' in str(error.value)
    data_set = load('cotton80', data_root=tmp_path, check_counts=False)
    assert len(data_set.CLASSES) == 80
    assert list(data_set.get_gt_labels()) == [2, 2, 78, 78]


def test_the_classes_of_a_part_can_be_given(tmp_path):
    names = ('GDC008', 'PI9', 'SD10')
    leaves = trees.gene_leaves(('GDC008', 'SD10'))
    trees.write('csv', tmp_path, 'soygene', leaves)
    options = dict(data_root=tmp_path, split='test', check_counts=False)
    data_set = load('soygene', **options)
    assert data_set.metainfo['classes'] == ('GDC008', 'SD10')
    data_set = load('soygene', **options, metainfo=dict(classes=names))
    assert data_set.metainfo['classes'] == names
    assert list(data_set.get_gt_labels()) == [0, 2]
    with pytest.raises(ValueError, match='1 classes.*: SD10'):
        load('soygene', **options, metainfo=dict(classes=['GDC008']))


BAD = dict(
    gone=None,
    empty=b'',
    text=b'not an image at all',
    png=trees.noise('.png')[: len(trees.noise('.png')) // 2],
    jpg=trees.noise('.jpg')[: len(trees.noise('.jpg')) // 2],
    padded=trees.noise('.jpg')[:-200].ljust(9000, b'\0'),
)
REASONS = dict(
    gone='missing',
    empty='empty file',
    text="not an image: it begins with b'not an",
    png='OSError: image file is truncated',
    jpg='truncated JPEG',
    padded='truncated JPEG',
)
COMMAND = 'tools/dataset_converters/ultra_fgvc.py check'


@pytest.mark.parametrize('form', ['csv', 'parquet'])
def test_all_bad_images_in_one_report(tmp_path, form):
    """By an import all of them; by a data set a few, and how to see all."""
    leaves, info = trees.cotton_leaves(), SETS['cotton80']
    rows = [i for i, leaf in enumerate(leaves) if leaf.split == 'train']
    bad = dict(zip(rows, BAD, strict=False))
    if form == 'parquet':
        names = {kind: f'.parquet/{row}' for row, kind in bad.items()}
        images = [BAD[bad[i]] if i in bad else trees.png() for i in range(480)]
        path = tmp_path / 'cotton80.parquet'
        trees.write_rows(path, leaves, images)
    else:
        names = {kind: f'/{leaves[row].name}' for row, kind in bad.items()}
        trees.write('csv', tmp_path / 'all leaves', 'cotton80', leaves)
        for kind, content in BAD.items():
            file = tmp_path / f'all leaves/cotton_square_new{names[kind]}'
            file.unlink()
            if content is not None:
                file.write_bytes(content)
    found = find_set(next(tmp_path.iterdir()), info)
    with pytest.raises(FileNotFoundError) as error:
        import_set(found, info, tmp_path / 'cotton80')
    said = str(error.value)
    assert 'Cotton80: 6 images cannot be read, 1 of them missing:' in said
    for kind, name in names.items():
        assert f'{name}: {REASONS[kind]}' in said
    assert len([*tmp_path.iterdir()]) == 1  # nothing is left
    if form == 'csv':
        place = tmp_path / 'all leaves'
        with pytest.raises(FileNotFoundError) as error:
            load('cotton80', 'train', place)
        said = str(error.value)
        assert '\n  ...\n' in said and said.count(': truncated') == 1
        assert f"{COMMAND} '{place}' --dataset cotton80" in said
        assert len(load('cotton80', 'val', place)) == 80
        (place / f'cotton_square_new{names["gone"]}').write_bytes(trees.png())
        with pytest.raises(ValueError, match='5 images cannot be read, 0 of'):
            load('cotton80', 'trainval', place)


def test_images_in_order_are_not_decoded(forms, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError('an image was decoded')

    monkeypatch.setattr('PIL.ImageFile.ImageFile.load', refuse)
    monkeypatch.setattr('mmcv.imfrombytes', refuse)
    root = forms / 'cotton80/csv'
    assert len(load('cotton80', 'trainval', root, check_counts=False)) == 45


def test_no_image_folder_at_all(tmp_path):
    trees.write('csv', tmp_path / 'cotton', 'cotton80', LEAVES['cotton80'])
    images = tmp_path / 'cotton' / 'cotton_square_new'
    images.rename(tmp_path / 'away')
    with pytest.raises(FileNotFoundError, match='45 of them missing') as e:
        load('cotton80', 'test', tmp_path, check_counts=False)
    assert f'{tmp_path}/cotton/images/1_' in str(e.value)


def test_names_in_a_parquet_file_lead_nowhere_else(tmp_path):
    leaves, info = trees.cotton_leaves(), SETS['cotton80']
    path = tmp_path / 'cotton80.parquet'
    trees.write_rows(path, leaves, [trees.png()] * 480)
    names = [leaf.name for leaf in leaves]
    names[0] = f'{leaves[0].class_name}_1/../../../{names[0]}'
    table = pq.read_table(path).append_column('file_name', [names])
    pq.write_table(table, path)
    import_set(find_set(path, info), info, tmp_path / 'out/cotton80')
    inside = {*(tmp_path / 'out/cotton80').rglob('*.*')}
    assert {*tmp_path.rglob('*.png')} <= inside


def test_import_set_writes_inside_its_folder_if_a_class_name_is_a_path(
    tmp_path,
):
    leaves, info = trees.gene_leaves(('../../../up', 'PI9')), SETS['soygene']
    path = tmp_path / 'soygene.parquet'
    trees.write_rows(path, leaves, [trees.png()] * len(leaves))
    import_set(find_set(path, info), info, tmp_path / 'a/out', counts=False)
    inside = {*(tmp_path / 'a/out').rglob('*.png')}
    assert len(inside) == len(leaves)
    assert {*tmp_path.rglob('*.png')} == inside
