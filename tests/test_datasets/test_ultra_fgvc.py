# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Every form of a dataset is found, loaded or imported, and checked."""

import pickle
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import ultra_fgvc_trees as trees

from mmclca.datasets.ultra_fgvc import UltraFGVC
from mmclca.datasets.ultra_fgvc.dataset import find_set
from mmclca.datasets.ultra_fgvc.importing import import_set, listed_images
from mmclca.datasets.ultra_fgvc.info import SETS, SPLITS, get_info
from mmclca.registry import DATASETS

FORMS = ('csv', 'released', 'folders', 'parquet')
LEAVES = dict(
    cotton80=[x for x in trees.cotton_leaves() if x.label < 15],
    soygene=trees.gene_leaves(),
    soyageing=trees.ageing_leaves(4),
)
COTTON = SETS['cotton80']


def load(*args, **kwargs):
    # serializing collects garbage, which takes longer than all else
    return UltraFGVC(*args, serialize_data=False, **kwargs)


@pytest.fixture(scope='module')
def forms(tmp_path_factory):
    """Folder with each dataset in each form: ``NAME/FORM``."""
    root = tmp_path_factory.mktemp('forms')
    for name, leaves in LEAVES.items():
        for form in FORMS:
            trees.write(form, root / name / form, name, leaves)
    return root


def names_and_labels(dataset):
    infos = map(dataset.get_data_info, range(len(dataset)))
    return [(Path(x['img_path']).name, x['gt_label']) for x in infos]


def expected(leaves, split):
    splits = ('train', 'val') if split == 'trainval' else (split,)
    return {(x.name, x.label) for x in leaves if x.split in splits}


@pytest.mark.parametrize('form', FORMS)
@pytest.mark.parametrize('name', LEAVES)
def test_import_keeps_lists_and_images_of_every_form(
    forms, tmp_path, form, name
):
    info, leaves = get_info(name), LEAVES[name]
    found = find_set(forms / name / form, info)
    assert found.form == form
    before = listed_images(found, info, counts=False)
    after = import_set(found, info, tmp_path / name, counts=False)
    assert before == after
    for split in SPLITS:
        pairs = expected(leaves, split)
        new = load(name, split, tmp_path, check_counts=False)
        assert new.where.startswith('csv at ') and len(new) == len(pairs)
        labels = Counter(label for _, label in pairs)
        assert Counter(new.get_gt_labels()) == labels
        if form != 'parquet':  # without file names
            assert set(names_and_labels(new)) == pairs
        if form in ('csv', 'released'):
            old = load(name, split, forms / name / form, check_counts=False)
            assert names_and_labels(old) == names_and_labels(new)
            assert old.CLASSES == new.CLASSES
    image = Path(new.get_data_info(0)['img_path'])
    assert image.read_bytes() == trees.png()
    assert [x.name for x in tmp_path.iterdir()] == [name]
    found = find_set(tmp_path, info)
    again = import_set(found, info, tmp_path / 'again', counts=False)
    labeled = [x._replace(given=str(x.label))[1:] for x in after]
    assert [x[1:] for x in again] == labeled or form == 'parquet'


@pytest.mark.parametrize('form', FORMS)
@pytest.mark.parametrize('name', ['SoyAgeing-R3', 'soyageing_r6'])
def test_stage_of_soyageing_is_loaded_and_imported(
    forms, tmp_path, name, form
):
    info, stage = get_info(name), name[-2:].upper()
    root, part = forms / 'soyageing' / form, dict(check_counts=False)
    import_set(find_set(root, info), info, tmp_path / info.name, False)
    for place in [tmp_path] + [root] * (form in ('csv', 'released')):
        dataset = load(name, 'trainval', place, **part)
        assert Counter(dataset.get_gt_labels()) == dict.fromkeys(range(4), 5)
        if form != 'parquet':
            leaves = [x for x in LEAVES['soyageing'] if x.stage == stage]
            assert set(names_and_labels(dataset)) == expected(
                leaves, 'trainval'
            )


def test_dataset_is_built_from_a_config_and_pickled(forms):
    root = forms / 'cotton80/csv'
    dataset = DATASETS.build(
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
    sample = dataset[5]
    assert sample['inputs'].shape == (3, 4, 4)
    assert sample['data_samples'].gt_label.item() == 1
    assert tuple(str(i) for i in range(1, 81)) == dataset.CLASSES
    assert 'Cotton80, test' in repr(dataset)
    assert f'csv at {root}' in repr(dataset)
    copy = pickle.loads(pickle.dumps(dataset))
    assert names_and_labels(copy) == names_and_labels(dataset)
    assert copy.metainfo == dataset.metainfo


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
def test_dataset_is_found_under_usual_folder_names(
    forms, tmp_path, name, source, folder
):
    place = tmp_path / folder
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(forms / source)
    dataset = load(name, 'test', tmp_path, check_counts=False)
    stages = trees.AGES if name == 'SoyAgeing' else ['']
    places = ', '.join(str(place / stage) for stage in stages)
    assert dataset.where == f'{source.split("/")[1]} at {places}'
    other = 'soyageing' if name == 'soyageing_r3' else 'soygene'
    with pytest.raises(FileNotFoundError, match='not found'):
        load(other, 'test', tmp_path)


@pytest.mark.parametrize(
    'form, place, target',
    [
        ('parquet', '', 'cotton80'),
        ('parquet', 'cotton80_dataset.parquet', 'cotton80'),
        ('parquet', 'datasets/ufgvc', 'cotton80'),  # as in `hf download`
        ('folders', 'cotton80', 'cotton80/cotton80'),
    ],
)
def test_error_names_the_import_command_if_the_form_is_not_trained_on(
    forms, tmp_path, form, place, target
):
    source = next((forms / 'cotton80' / form).glob('*.parquet'), None)
    link = tmp_path / place
    if source:
        link = link if link.suffix else link / source.name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(source or forms / 'cotton80' / form)
    root = link if place.endswith('parquet') else tmp_path
    with pytest.raises(FileNotFoundError) as error:
        load('cotton80', 'test', root)
    command = f'import {root} --dataset cotton80 --to {tmp_path}/{target}'
    assert command in str(error.value)


@pytest.mark.parametrize(
    'options, term',
    [
        (dict(dataset='cotton'), 'dataset'),
        (dict(dataset='soyageing_r2'), 'soyageing_r1'),
        (dict(split='Test'), 'split'),
        (dict(layout='csv'), 'layout'),
    ],
)
def test_dataset_refuses_setting(tmp_path, options, term):
    options = dict(dataset='cotton80', data_root=tmp_path) | options
    with pytest.raises((TypeError, ValueError), match=term):
        load(**options)


def test_get_info_accepts_every_spelling():
    names = 'SoyAgeing-R1', 'soyageing_r1', 'SOYAGEINGR1', 'SoyAgeing R1'
    assert {get_info(name).name for name in names} == {'soyageing_r1'}
    assert {get_info(info.title).name for info in SETS.values()} == set(SETS)


def test_error_names_searched_places_if_the_dataset_is_missing(tmp_path):
    (tmp_path / 'COTTON').mkdir()
    dataset = load('cotton80', data_root=tmp_path, lazy_init=True)
    with pytest.raises(FileNotFoundError) as error:
        len(dataset)
    message = str(error.value)
    assert f'{tmp_path}/COTTON\n' in message and f'{tmp_path}\n' in message
    assert 'cotton80_dataset.parquet' in message
    assert f'download cotton80 --to {tmp_path}' in message


def test_part_of_a_dataset_needs_check_counts(tmp_path):
    leaves = [x for x in trees.cotton_leaves() if x.label in (2, 78)]
    trees.write('csv', tmp_path, 'cotton80', leaves)
    with pytest.raises(ValueError, match='check_counts=False'):
        load('cotton80', data_root=tmp_path)
    dataset = load('cotton80', data_root=tmp_path, check_counts=False)
    assert len(dataset.CLASSES) == 80
    assert list(dataset.get_gt_labels()) == [2, 2, 78, 78]


def test_metainfo_sets_the_classes_of_a_part(tmp_path):
    names = ('GDC008', 'PI9', 'SD10')
    leaves = trees.gene_leaves(('GDC008', 'SD10'))
    trees.write('csv', tmp_path, 'soygene', leaves)
    options = dict(data_root=tmp_path, split='test', check_counts=False)
    dataset = load('soygene', **options)
    assert dataset.metainfo['classes'] == ('GDC008', 'SD10')
    dataset = load('soygene', **options, metainfo=dict(classes=names))
    assert dataset.metainfo['classes'] == names
    assert list(dataset.get_gt_labels()) == [0, 2]
    with pytest.raises(ValueError, match='SD10'):
        load('soygene', **options, metainfo=dict(classes=['GDC008']))


PNG, JPG = trees.noise('.png'), trees.noise('.jpg')
BAD = dict(
    gone=(None, 'missing'),
    empty=(b'', 'empty file'),
    text=(b'not an image at all', 'not an image'),
    png=(PNG[: len(PNG) // 2], 'OSError'),
    jpg=(JPG[: len(JPG) // 2], 'truncated JPEG'),
    padded=(JPG[:-200].ljust(9000, b'\0'), 'truncated JPEG'),
)


@pytest.mark.parametrize('form', ['csv', 'parquet'])
def test_bad_images_are_reported_together(tmp_path, form):
    leaves = trees.cotton_leaves()
    rows = [i for i, leaf in enumerate(leaves) if leaf.split == 'train']
    bad = dict(zip(rows, BAD, strict=False))
    if form == 'parquet':
        names = {kind: f'.parquet/{row}' for row, kind in bad.items()}
        images = [trees.png()] * 480
        for row, kind in bad.items():
            images[row] = BAD[kind][0]
        path = tmp_path / 'cotton80.parquet'
        trees.write_rows(path, leaves, images)
    else:
        names = {kind: f'/{leaves[row].name}' for row, kind in bad.items()}
        trees.write('csv', tmp_path / 'all leaves', 'cotton80', leaves)
        for kind, (content, _) in BAD.items():
            file = tmp_path / f'all leaves/cotton_square_new{names[kind]}'
            file.unlink()
            if content is not None:
                file.write_bytes(content)
    found = find_set(next(tmp_path.iterdir()), COTTON)
    with pytest.raises(FileNotFoundError) as error:
        import_set(found, COTTON, tmp_path / 'cotton80')
    message = str(error.value)
    assert '6 images cannot be read, 1 of them missing' in message
    for kind, name in names.items():
        assert f'{name}: {BAD[kind][1]}' in message
    assert len([*tmp_path.iterdir()]) == 1  # no partial import
    if form == 'csv':
        place = tmp_path / 'all leaves'
        with pytest.raises(FileNotFoundError) as error:
            load('cotton80', 'train', place)
        message = str(error.value)
        assert '\n  ...\n' in message and message.count(': truncated') == 1
        assert f"check '{place}' --dataset cotton80" in message
        assert len(load('cotton80', 'val', place)) == 80
        (place / f'cotton_square_new{names["gone"]}').write_bytes(trees.png())
        with pytest.raises(ValueError, match='5 images'):
            load('cotton80', 'trainval', place)


def test_good_images_are_not_decoded(forms, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError('an image was decoded')

    monkeypatch.setattr('PIL.ImageFile.ImageFile.load', refuse)
    monkeypatch.setattr('mmcv.imfrombytes', refuse)
    root = forms / 'cotton80/csv'
    assert len(load('cotton80', 'trainval', root, check_counts=False)) == 45


def test_error_counts_images_if_the_image_folder_is_missing(tmp_path):
    trees.write('csv', tmp_path / 'cotton', 'cotton80', LEAVES['cotton80'])
    images = tmp_path / 'cotton' / 'cotton_square_new'
    images.rename(tmp_path / 'away')
    with pytest.raises(FileNotFoundError, match='45 of them missing') as e:
        load('cotton80', 'test', tmp_path, check_counts=False)
    assert f'{tmp_path}/cotton/images/1_' in str(e.value)


def test_import_ignores_file_names_in_a_parquet_file(tmp_path):
    leaves = trees.cotton_leaves()
    path = tmp_path / 'cotton80.parquet'
    trees.write_rows(path, leaves, [trees.png()] * 480)
    names = [leaf.name for leaf in leaves]
    names[0] = f'{leaves[0].class_name}_1/../../../{names[0]}'
    table = pq.read_table(path).append_column('file_name', [names])
    pq.write_table(table, path)
    import_set(find_set(path, COTTON), COTTON, tmp_path / 'out/cotton80')
    inside = {*(tmp_path / 'out/cotton80').rglob('*.*')}
    assert {*tmp_path.rglob('*.png')} <= inside


def test_import_stays_in_its_folder_if_a_class_name_is_a_path(tmp_path):
    leaves, info = trees.gene_leaves(('../../../up', 'PI9')), SETS['soygene']
    path = tmp_path / 'soygene.parquet'
    trees.write_rows(path, leaves, [trees.png()] * len(leaves))
    import_set(find_set(path, info), info, tmp_path / 'a/out', counts=False)
    inside = {*(tmp_path / 'a/out').rglob('*.png')}
    assert len(inside) == len(leaves)
    assert {*tmp_path.rglob('*.png')} == inside
