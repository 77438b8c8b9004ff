# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Every published layout is imported, and the import is loaded."""

import pickle
from collections import Counter
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import ultra_fgvc_trees as trees

from mmclca.datasets.ultra_fgvc import UltraFGVC
from mmclca.datasets.ultra_fgvc.importing import (
    find_set,
    import_set,
    list_labeled_images,
)
from mmclca.datasets.ultra_fgvc.info import SETS, SPLITS, get_info

LAYOUTS = ('csv', 'released', 'folders', 'parquet')
LEAVES = dict(
    cotton80=[x for x in trees.cotton_leaves() if x.label in (0, 1, 8, 9)],
    soygene=trees.gene_leaves(),
    soyageing=trees.ageing_leaves(2),
)
COTTON = SETS['cotton80']
# serializing collects garbage, which takes longer than all else
load = partial(UltraFGVC, serialize_data=False, check_counts=False)


@pytest.fixture(scope='module')
def layouts(tmp_path_factory):
    """Folder with each dataset in each layout: ``NAME/LAYOUT``."""
    root = tmp_path_factory.mktemp('layouts')
    for name, leaves in LEAVES.items():
        for layout in LAYOUTS:
            trees.write(layout, root / name / layout, name, leaves)
    return root


def names_and_labels(dataset):
    infos = map(dataset.get_data_info, range(len(dataset)))
    return [(Path(x['img_path']).name, x['gt_label']) for x in infos]


def describe(images):
    return [
        (x.file_name, x.class_name, x.split, x.stage, x.label) for x in images
    ]


def expected(leaves, split):
    splits = ('train', 'val') if split == 'trainval' else (split,)
    return {(x.name, x.label) for x in leaves if x.split in splits}


@pytest.mark.parametrize('layout', LAYOUTS)
@pytest.mark.parametrize('name', LEAVES)
def test_import_keeps_lists_and_images_of_every_layout(
    layouts, tmp_path, layout, name
):
    info, leaves = get_info(name), LEAVES[name]
    published = find_set(layouts / name / layout, info)
    assert published.layout == layout
    before = list_labeled_images(published, info, partial=True)
    after = import_set(published, info, tmp_path / name, partial=True)
    assert before == after
    for split in SPLITS:
        pairs = expected(leaves, split)
        new = load(name, split, tmp_path)
        assert len(new) == len(pairs)
        labels = Counter(label for _, label in pairs)
        assert Counter(new.get_gt_labels()) == labels
        if layout != 'parquet':  # without file names
            assert set(names_and_labels(new)) == pairs
        if layout == 'csv':
            old = load(name, split, layouts / name / layout)
            assert names_and_labels(old) == names_and_labels(new)
            assert old.CLASSES == new.CLASSES
    image = Path(new.get_data_info(0)['img_path'])
    assert image.read_bytes() == trees.png()
    assert [x.name for x in tmp_path.iterdir()] == [name]
    again = import_set(
        find_set(tmp_path / name, info), info, tmp_path / 'again', True
    )
    if layout != 'parquet':  # without file names
        assert describe(again) == describe(after)


@pytest.mark.parametrize(
    'name, layout',
    [
        ('SoyAgeing-R3', 'csv'),
        *(('soyageing_r6', layout) for layout in LAYOUTS),
    ],
)
def test_stage_of_soyageing_is_imported_and_loaded(
    layouts, tmp_path, name, layout
):
    info, stage = get_info(name), name[-2:].upper()
    root = layouts / 'soyageing' / layout
    import_set(find_set(root, info), info, tmp_path / info.name, partial=True)
    places = [tmp_path, tmp_path / info.name] + [root] * (layout == 'csv')
    for root in places:
        dataset = load(name, 'trainval', root)
        assert Counter(dataset.get_gt_labels()) == dict.fromkeys(range(2), 5)
        if layout != 'parquet':
            leaves = [x for x in LEAVES['soyageing'] if x.stage == stage]
            pairs = expected(leaves, 'trainval')
            assert set(names_and_labels(dataset)) == pairs


def test_stage_is_loaded_from_the_whole_soyageing(layouts, tmp_path):
    (tmp_path / 'soyageing').symlink_to(layouts / 'soyageing/csv')
    assert len(load('soyageing_r4', 'test', tmp_path)) == 10
    assert len(load('soyageing', 'test', tmp_path)) == 50


def test_folder_of_a_stage_is_imported(layouts, tmp_path):
    info = get_info('soyageing_r3')
    root = layouts / 'soyageing/released/R3'
    assert len(import_set(find_set(root, info), info, partial=True)) == 20


def test_dataset_is_described_and_pickled(layouts):
    root = layouts / 'cotton80/csv'
    dataset = load('cotton80', 'test', str(root))
    assert tuple(str(i) for i in range(1, 81)) == dataset.CLASSES
    assert 'Cotton80, test' in repr(dataset)
    assert f'Source: \t{root}' in repr(dataset)
    copy = pickle.loads(pickle.dumps(dataset))
    assert names_and_labels(copy) == names_and_labels(dataset)
    assert copy.metainfo == dataset.metainfo


@pytest.mark.parametrize('layout', ['released', 'folders', 'parquet'])
def test_dataset_must_be_imported_if_it_has_no_csv_lists(layouts, layout):
    with pytest.raises(FileNotFoundError, match='import the dataset'):
        load('cotton80', 'test', layouts / 'cotton80' / layout)


@pytest.mark.parametrize(
    'root', ['cotton80_dataset.parquet', 'datasets/ufgvc']
)
def test_downloaded_parquet_file_is_found(layouts, tmp_path, root):
    source = layouts / 'cotton80/parquet'
    if root.endswith('.parquet'):
        assert len(find_set(source / root, COTTON).images) == 24
        return
    (tmp_path / 'datasets').mkdir()
    (tmp_path / root).symlink_to(source)
    assert len(find_set(tmp_path, COTTON).images) == 24
    with pytest.raises(FileNotFoundError, match='soygene_dataset'):
        find_set(tmp_path, SETS['soygene'])


def test_dataset_refuses_root_if_it_is_not_a_folder():
    with pytest.raises(ValueError, match='data_root=7'):
        load('cotton80', data_root=7)


def test_names_are_accepted_in_every_spelling(tmp_path):
    names = 'SoyAgeing-R1', 'soyageing_r1', 'SOYAGEINGR1', 'SoyAgeing R1'
    assert {get_info(name).name for name in names} == {'soyageing_r1'}
    assert {get_info(info.title).name for info in SETS.values()} == set(SETS)
    with pytest.raises(ValueError, match='soyageing_r1'):
        load('soyageing_r2', data_root=tmp_path)
    with pytest.raises(ValueError, match='split'):
        load('cotton80', 'Test', tmp_path)


def test_part_of_a_dataset_needs_check_counts(layouts):
    root = layouts / 'cotton80/csv'
    with pytest.raises(ValueError, match='check_counts=False'):
        load('cotton80', data_root=root, check_counts=True)
    published = find_set(root, COTTON)
    with pytest.raises(ValueError, match='partial=True'):
        import_set(published, COTTON)
    with pytest.raises(FileExistsError):
        import_set(published, COTTON, root, partial=True)
    assert len(import_set(published, COTTON, partial=True)) == 24
    dataset = load('cotton80', data_root=root)
    assert len(dataset.CLASSES) == 80
    assert list(dataset.get_gt_labels()) == [0, 0, 1, 1, 8, 8, 9, 9]


def test_metainfo_sets_the_classes_of_a_part(tmp_path):
    names = ('GDC008', 'PI9', 'SD10')
    leaves = trees.gene_leaves(('GDC008', 'SD10'))
    trees.write('csv', tmp_path, 'soygene', leaves)
    part = partial(load, 'soygene', 'test', tmp_path)
    assert part().metainfo['classes'] == ('GDC008', 'SD10')
    dataset = part(metainfo=dict(classes=names))
    assert dataset.metainfo['classes'] == names
    assert list(dataset.get_gt_labels()) == [0, 2]
    with pytest.raises(ValueError, match='SD10'):
        part(metainfo=dict(classes=['GDC008']))


PNG, JPG = trees.noise('.png'), trees.noise('.jpg')
BAD = dict(
    gone=(None, 'missing'),
    empty=(b'', 'empty file'),
    text=(b'not an image at all', 'not an image'),
    png=(PNG[: len(PNG) // 2], 'OSError'),
    jpg=(JPG[: len(JPG) // 2], 'truncated JPEG'),
    padded=(JPG[:-200].ljust(9000, b'\0'), 'truncated JPEG'),
)
ROWS = [i for i, x in enumerate(LEAVES['cotton80']) if x.split == 'train']


def import_bad(root, names):
    """Check that an import refuses the images with these names, by kind."""
    published = find_set(root, COTTON)
    with pytest.raises(FileNotFoundError) as error:
        import_set(published, COTTON, root.parent / 'cotton80', partial=True)
    message = str(error.value)
    assert '6 images cannot be read, 1 of them missing' in message
    for name, (_, problem) in zip(names, BAD.values(), strict=False):
        assert f'{name}: {problem}' in message
    assert [*root.parent.iterdir()] == [root]  # no partial import


def test_bad_rows_of_a_parquet_file_are_reported_together(tmp_path):
    images = [trees.png()] * len(LEAVES['cotton80'])
    for row, (content, _) in zip(ROWS, BAD.values(), strict=False):
        images[row] = content
    path = tmp_path / 'cotton80.parquet'
    trees.write_rows(path, LEAVES['cotton80'], images)
    import_bad(path, [f'{path}/{row}' for row in ROWS])


def test_bad_images_are_reported_together(tmp_path):
    root = tmp_path / 'all leaves'
    trees.write('csv', root, 'cotton80', LEAVES['cotton80'])
    names = [LEAVES['cotton80'][row].name for row in ROWS]
    files = [root / 'cotton_square_new' / name for name in names]
    for file, (content, _) in zip(files, BAD.values(), strict=False):
        file.unlink()
        if content is not None:
            file.write_bytes(content)
    import_bad(root, files)
    with pytest.raises(FileNotFoundError) as error:
        load('cotton80', 'train', root)
    message = str(error.value)
    assert message.endswith('\n  ...') and message.count(': truncated') == 1
    assert len(load('cotton80', 'val', root)) == 4
    files[0].write_bytes(trees.png())
    with pytest.raises(ValueError, match='5 images'):
        load('cotton80', 'trainval', root)
    (root / 'cotton_square_new').rename(tmp_path / 'away')
    with pytest.raises(FileNotFoundError, match='12 of them missing') as error:
        load('cotton80', 'test', root)
    assert f'{root}/images/1_' in str(error.value)


def test_good_images_are_not_decoded(layouts, monkeypatch):
    monkeypatch.setattr('PIL.ImageFile.ImageFile.load', None)
    monkeypatch.setattr('cv2.imdecode', None)
    assert len(load('cotton80', 'trainval', layouts / 'cotton80/csv')) == 12


def test_import_stays_in_its_folder_if_names_are_paths(tmp_path):
    leaves, info = trees.gene_leaves(('../../../up', 'PI9')), SETS['soygene']
    path = tmp_path / 'soygene.parquet'
    trees.write_rows(path, leaves, [trees.png()] * len(leaves))
    names = [f'../../../{leaf.name}' for leaf in leaves]
    table = pq.read_table(path).append_column('file_name', [names])
    pq.write_table(table, path)
    import_set(find_set(path, info), info, tmp_path / 'a/out', partial=True)
    inside = {*(tmp_path / 'a/out').rglob('*.png')}
    assert len(inside) == len(leaves)
    assert {*tmp_path.rglob('*.png')} == inside
