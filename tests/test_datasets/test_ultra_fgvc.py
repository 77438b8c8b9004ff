# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import logging
import pickle
import re
from collections import Counter

import pytest
import ultra_fgvc_trees as trees
from mmengine.logging import MMLogger

from mmclca.datasets.ultra_fgvc import UltraFGVC
from mmclca.datasets.ultra_fgvc.info import SETS, SPLITS, get_info
from mmclca.registry import DATASETS

LAYOUTS = ('csv', 'released', 'folders', 'parquet')


def load(*args, **kwargs):
    # Serializing collects garbage first, which takes longer than all else.
    return UltraFGVC(*args, serialize_data=False, **kwargs)


@pytest.fixture(scope='module')
def cotton(tmp_path_factory):
    """Cotton80 in all layouts, a folder each."""
    root = tmp_path_factory.mktemp('cotton')
    for layout in LAYOUTS:
        trees.write(layout, root / layout, 'cotton80', trees.cotton_leaves())
    return root


@pytest.fixture(scope='module')
def ageing(tmp_path_factory):
    """SoyAgeing in all layouts, a folder each."""
    root = tmp_path_factory.mktemp('ageing')
    for layout in LAYOUTS:
        trees.write(layout, root / layout, 'soyageing', trees.ageing_leaves())
    return root


def name_and_label(data_set):
    return [
        (item['img_path'].rsplit('/', 1)[1], item['gt_label'])
        for item in map(data_set.get_data_info, range(len(data_set)))
    ]


def wanted(leaves, split):
    splits = ('train', 'val') if split == 'trainval' else (split,)
    return {(x.name, x.label) for x in leaves if x.split in splits}


def check_same_lists(sets, leaves, split):
    lists = {layout: name_and_label(x) for layout, x in sets.items()}
    assert set(lists['csv']) == wanted(leaves, split)
    assert lists['csv'] == lists['released'] == lists['folders']
    # The mirror keeps no names.
    labels = [label for _, label in lists['csv']]
    assert [label for _, label in lists['parquet']] == labels


@pytest.mark.parametrize('split', SPLITS)
def test_every_layout_gives_the_same_cotton80(cotton, split):
    sets = {
        layout: load('cotton80', split, cotton / layout) for layout in LAYOUTS
    }
    for layout, data_set in sets.items():
        assert data_set.source.layout == layout
        assert tuple(str(i) for i in range(1, 81)) == data_set.CLASSES
    check_same_lists(sets, trees.cotton_leaves(), split)


@pytest.mark.parametrize('split', ['trainval', 'val'])
def test_every_layout_gives_the_same_soyageing(ageing, split):
    sets = {
        layout: load('SoyAgeing', split, ageing / layout) for layout in LAYOUTS
    }
    assert len(sets['csv']) == SETS['soyageing'].counts[split]
    check_same_lists(sets, trees.ageing_leaves(), split)


@pytest.mark.parametrize('layout', LAYOUTS)
@pytest.mark.parametrize('name', ['SoyAgeing-R3', 'soyageing_r6'])
def test_a_stage_of_soyageing(ageing, name, layout):
    stage = name[-2:].upper()
    data_set = load(name, 'trainval', ageing / layout)
    assert len(data_set) == 990 and len(data_set.CLASSES) == 198
    assert Counter(data_set.get_gt_labels()) == dict.fromkeys(range(198), 5)
    if layout != 'parquet':
        leaves = [x for x in trees.ageing_leaves() if x.stage == stage]
        assert set(name_and_label(data_set)) == wanted(leaves, 'trainval')
    for split in ('train', 'val'):  # nobody says how a stage is divided
        with pytest.raises(ValueError, match='split may be trainval, test'):
            load(name, split, ageing / layout)


def test_named_classes_are_sorted_as_strings(tmp_path):
    trees.write('released', tmp_path, 'soygene', trees.gene_leaves())
    data_set = load('soygene', 'test', tmp_path, check_counts=False)
    assert data_set.CLASSES == ('GDC008', 'GDC1', 'PI9', 'SD10', 'SD9')
    assert list(data_set.get_gt_labels()) == [0, 1, 2, 3, 4]


def test_builds_from_a_config(cotton):
    data_set = DATASETS.build(
        dict(
            type='mmclca.UltraFGVC',
            dataset='cotton80',
            split='test',
            data_root=str(cotton / 'csv'),
            pipeline=[dict(type='LoadImageFromFile'), dict(type='PackInputs')],
            test_mode=True,
        )
    )
    sample = data_set[5]
    assert sample['inputs'].shape == (3, 4, 4)
    assert sample['data_samples'].gt_label.item() == 1
    assert 'Cotton80, test' in repr(data_set)
    assert f'csv layout at {cotton / "csv"}' in repr(data_set)


@pytest.mark.parametrize(
    'folder', ['cotton', 'COTTON', 'Cotton80', 'Cotton_80', 'Cotton80/COTTON']
)
def test_folder_names_that_people_have(cotton, tmp_path, folder):
    place = tmp_path / folder
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(cotton / 'released')
    data_set = load('Cotton80', 'test', tmp_path)
    assert data_set.source.roots[0][1] == place


@pytest.mark.parametrize(
    'folder', ['R3', 'SoyAgeing/R3', 'soybean_aging_R3', 'soy_aging/R3']
)
def test_folder_names_of_a_stage(ageing, tmp_path, folder):
    place = tmp_path / folder
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(ageing / 'released' / 'R3')
    assert len(load('soyageing_r3', 'test', tmp_path)) == 990
    with pytest.raises(FileNotFoundError, match='SoyAgeing was not found'):
        load('soyageing', 'test', tmp_path)


def test_a_parquet_file_is_a_data_root(cotton, tmp_path):
    file = cotton / 'parquet' / 'cotton80_dataset.parquet'
    assert len(load('cotton80', 'val', file)) == 80
    below = tmp_path / 'datasets' / 'ufgvc'  # as `hf download` puts it
    below.mkdir(parents=True)
    (below / file.name).symlink_to(file)
    assert len(load('cotton80', 'val', tmp_path)) == 80


def test_layout_is_logged_once_and_can_be_chosen(cotton, tmp_path, caplog):
    for layout in ('csv', 'released', 'parquet'):
        for file in (cotton / layout).iterdir():
            if file.name[0] != '.' and not (tmp_path / file.name).exists():
                (tmp_path / file.name).symlink_to(file)
    logger = MMLogger.get_current_instance()
    logger.addHandler(caplog.handler)
    try:
        data_set = load('cotton80', 'test', tmp_path)
        data_set.full_init()
    finally:
        logger.removeHandler(caplog.handler)
    (message,) = [x for x in caplog.messages if 'layout at' in x]
    assert message.startswith(f'Cotton80, test: csv layout at {tmp_path};')
    assert 'also there: released layout' in message
    assert 'parquet layout' in message
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]
    for layout in ('released', 'parquet'):
        data_set = load('cotton80', data_root=tmp_path, layout=layout)
        assert data_set.source.layout == layout


@pytest.mark.parametrize(
    'options, message',
    [
        (dict(dataset='cotton'), "dataset='cotton' is not .* cotton80, soyl"),
        (dict(dataset='soyageing_r2'), 'soyageing_r1, soyageing_r3'),
        (dict(split='Test'), "split='Test' is unknown; there are train, val"),
        (dict(layout='zip'), "layout='zip' is unknown; there are csv, rel"),
    ],
)
def test_unknown_names(tmp_path, options, message):
    options = dict(dataset='cotton80', data_root=tmp_path) | options
    with pytest.raises(ValueError, match=message):
        load(**options)


def test_a_misspelled_option_is_an_error(tmp_path):
    with pytest.raises(TypeError, match='dataroot'):
        load('cotton80', dataroot=tmp_path)


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
    with pytest.raises(FileNotFoundError) as error:
        load('cotton80', data_root=tmp_path)
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
    assert re.search(
        r'found +2 classes, images: train 4, val 2, trainval 6, test 6\n'
        r' +expected 80 classes, images: train 160, val 80, trainval 240, ',
        str(error.value),
    )
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
    with pytest.raises(ValueError, match='not among the 1 classes.*: SD10'):
        load('soygene', **options, metainfo=dict(classes=['GDC008']))


BAD = dict(
    empty=b'',
    text=b'not an image at all',
    png=trees.noise('.png')[: len(trees.noise('.png')) // 2],
    jpg=trees.noise('.jpg')[: len(trees.noise('.jpg')) // 2],
    padded=trees.noise('.jpg')[:-200].ljust(9000, b'\0'),
)
COMMAND = 'tools/dataset_converters/ultra_fgvc.py check {} --dataset cotton80'


def check_report(message, root, names):
    """Whether a report tells all that ``BAD`` and a missing image have."""
    name = dict(zip(('gone', *BAD), names, strict=True))
    assert f'1 images are missing: {name["gone"]}\n' in message
    assert f'1 images are empty: {name["empty"]}\n' in message
    assert '4 images cannot be read:\n' in message
    assert f"{name['text']}: no image: it begins with b'not an" in message
    assert f'{name["png"]}: OSError: image file is truncated' in message
    for kind in ('jpg', 'padded'):
        assert f'{name[kind]}: cut short: a JPEG' in message
    assert COMMAND.format(root) in message


def test_all_bad_files_in_one_report(tmp_path):
    trees.write('csv', tmp_path, 'cotton80', trees.cotton_leaves())
    images = tmp_path / 'cotton_square_new'
    names = [f'{c}_5_train.png' for c in range(1, 7)]
    for name, content in zip(names, [None, *BAD.values()], strict=True):
        (images / name).unlink()
        if content is not None:
            (images / name).write_bytes(content)
    with pytest.raises(FileNotFoundError) as error:
        load('cotton80', 'train', tmp_path)
    check_report(str(error.value), tmp_path, names)
    assert f'looked in {images}\n' in str(error.value)
    assert len(load('cotton80', 'val', tmp_path)) == 80
    (images / names[0]).write_bytes(trees.png())
    with pytest.raises(ValueError, match='4 images cannot be read'):
        load('cotton80', 'trainval', tmp_path)


def test_all_bad_rows_in_one_report(tmp_path):
    leaves = trees.cotton_leaves()
    rows = [i for i, leaf in enumerate(leaves) if leaf.split == 'train'][:6]
    images = [trees.png()] * 480
    for row, content in zip(rows, [None, *BAD.values()], strict=True):
        images[row] = content
    path = tmp_path / 'cotton80_dataset.parquet'
    trees.write_rows(path, leaves, images)
    with pytest.raises(FileNotFoundError) as error:
        load('cotton80', 'train', tmp_path)
    check_report(
        str(error.value), path, [f'{path.name}/{row}' for row in rows]
    )
    assert len(load('cotton80', 'test', tmp_path)) == 240


def test_the_report_shows_a_few_and_a_command_for_all(tmp_path):
    """For a set in five places too, and a folder with a blank."""
    place = tmp_path / 'all leaves'
    trees.write('released', place, 'soyageing', trees.ageing_leaves())
    for stage in trees.AGES[1:3]:
        for k in range(1, 5):
            name = f'yd012_{stage}_{k}_train.png'
            (place / stage / 'images' / name).unlink()
    with pytest.raises(FileNotFoundError) as error:
        load('soyageing', 'train', place)
    message = str(error.value)
    assert '8 images are missing: yd012_R3_1_train.png, ' in message
    assert 'yd012_R4_1_train.png, ...\n' in message
    assert 'yd012_R4_2_train.png' not in message
    assert f"check '{place}' --dataset soyageing --report" in message


@pytest.mark.parametrize('layout', ['csv', 'parquet'])
def test_images_in_order_are_not_decoded(cotton, layout, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError('an image was decoded')

    monkeypatch.setattr('PIL.ImageFile.ImageFile.load', refuse)
    monkeypatch.setattr('mmcv.imfrombytes', refuse)
    assert len(load('cotton80', 'trainval', cotton / layout)) == 240


def test_no_image_folder_at_all(tmp_path):
    trees.write('csv', tmp_path / 'cotton', 'cotton80', trees.cotton_leaves())
    images = tmp_path / 'cotton' / 'cotton_square_new'
    images.rename(tmp_path / 'away')
    with pytest.raises(FileNotFoundError) as error:
        load('cotton80', 'test', tmp_path)
    assert '240 images are missing' in str(error.value)
    assert f'looked in {images}' in str(error.value)


def test_lazy_init_reads_nothing(tmp_path):
    data_set = load('cotton80', data_root=tmp_path, lazy_init=True)
    with pytest.raises(FileNotFoundError, match='was not found'):
        len(data_set)


def test_a_copy_for_a_worker(cotton):
    data_set = load('cotton80', data_root=cotton / 'parquet')
    copy = pickle.loads(pickle.dumps(data_set))
    assert name_and_label(copy) == name_and_label(data_set)
    assert copy.metainfo == data_set.metainfo
