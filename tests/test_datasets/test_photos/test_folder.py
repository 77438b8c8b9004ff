# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from unicodedata import normalize

import pytest

from mmclca.datasets.photos import read_photos


def rows(photos, root):
    """Path, class and split of each photo."""
    assert photos.source == str(root)
    paths = [path.removeprefix(f'{root}/') for path in photos.paths]
    facts = photos.names, photos.splits
    return [*zip(paths, *facts, strict=True)]


def describe_unused(photos):
    """Reasons for unused files, by path."""
    return {path: str(note) for path, note in photos.unused.items()}


def test_first_folder_level_names_classes(make, tmp_path):
    make('tulip/a.JPG', 'rose/2024/may/b.tiff', 'rose/c d.HEIC')
    photos = read_photos(str(tmp_path))
    assert rows(photos, tmp_path) == [
        ('rose/2024/may/b.tiff', 'rose', ''),
        ('rose/c d.HEIC', 'rose', ''),
        ('tulip/a.JPG', 'tulip', ''),
    ]
    assert photos.classes == ['rose', 'tulip'] and photos.groups is None
    assert photos.unused == {} and photos.counts() == dict(rose=2, tulip=1)


def test_other_files_are_left_out(make, tmp_path):
    make('rose/a.jpg', 'tulip/b.jpg', 'empty/notes.txt')
    make('rose/Thumbs.db', 'rose/.c.jpg', '.trash/d.jpg')
    make('__MACOSX/rose/._a.jpg', '__MACOSX/rose/a.jpg')
    make('loose.jpg', 'rose/film.MP4')
    photos = read_photos(tmp_path)
    assert photos.classes == ['rose', 'tulip'] and len(photos) == 2
    assert describe_unused(photos) == {
        f'{tmp_path}/loose.jpg': 'not in a class folder',
        f'{tmp_path}/rose/film.MP4': 'ending in .mp4',
        f'{tmp_path}/empty/notes.txt': 'ending in .txt',
    }


@pytest.mark.parametrize(
    'train, val, test', [('train', 'val', 'test'), ('Train', 'valid', 'TEST')]
)
def test_split_folders_are_read(make, tmp_path, train, val, test):
    make(f'{train}/rose/a.jpg', f'{train}/tulip/b.jpg')
    make(f'{val}/rose/c.jpg', f'{test}/tulip/deep/d.jpg')
    make(f'{val}/e.jpg', 'originals/rose/a.jpg')
    photos = read_photos(tmp_path)
    assert sorted(rows(photos, tmp_path)) == sorted(
        [
            (f'{train}/rose/a.jpg', 'rose', 'train'),
            (f'{train}/tulip/b.jpg', 'tulip', 'train'),
            (f'{val}/rose/c.jpg', 'rose', 'val'),
            (f'{test}/tulip/deep/d.jpg', 'tulip', 'test'),
        ]
    )
    assert describe_unused(photos) == {
        f'{tmp_path}/{val}/e.jpg': 'not in a class folder',
        f'{tmp_path}/originals/rose/a.jpg': 'not in train, val or test',
    }
    assert [photos.splits[i] for i in photos.to_train()] == ['train'] * 2


@pytest.mark.parametrize(
    'names, classes',
    [
        (('train/a.jpg', 'bus/b.jpg'), ['bus', 'train']),
        (('train/steam/a.jpg', 'bus/b.jpg'), ['bus', 'train']),
        (('test/a.jpg', 'control/b.jpg'), ['control', 'test']),
        (('train/a.jpg', 'test/b.jpg'), ['test', 'train']),
        (('train/rose/a.jpg', 'train/elm/b.jpg'), ['elm', 'rose']),
    ],
)
def test_class_may_be_named_like_a_split(make, names, classes):
    assert read_photos(make(*names)).classes == classes


@pytest.mark.parametrize(
    'files, source, options, term',
    [
        ([], 'gone', {}, 'gone does not exist'),
        (['a.jpg'], 'a.jpg', {}, 'a.jpg is a file'),
        ([], '', {}, 'no files'),
        (['rose/a.cr2', 'tulip/b.cr2'], '', {}, '2 other files'),
        (['a.jpg', 'b.jpg'], '', {}, '2 photos but no class folders'),
        (['rose/a.jpg', 'rose/b.jpg'], '', {}, 'folder rose; make [^;]*$'),
        (['rose/x/a.jpg', 'rose/y/b.jpg'], '', {}, 'classes, use .*/rose'),
        (['rose/p1.jpg', 'elm/2.jpg'], '', dict(groups='p[0-9]'), '1 of 2'),
        (['rose/p1.jpg', 'elm/2.jpg'], '', dict(groups='p('), 'groups='),
        (['rose/p1.jpg', 'elm/p2.jpg'], '', dict(groups='p'), 'one group'),
    ],
)
def test_photos_are_refused(make, tmp_path, files, source, options, term):
    make(*files)
    with pytest.raises((FileNotFoundError, ValueError), match=term) as error:
        read_photos(tmp_path / source, **options)
    assert '\n' not in str(error.value)


def test_folders_in_two_normalizations_are_one_class_and_noted(make):
    names = [normalize(form, 'Büche') for form in ('NFC', 'NFD')]
    photos = read_photos(make(*(f'{x}/a.jpg' for x in names), 'elm/b.jpg'))
    assert photos.counts() == {names[0]: 2, 'elm': 1}
    (note,) = map(str, photos.notes)
    assert '2 folders' in note and names[0] in note


def test_regular_expression_groups_photos(make):
    source = make('rose/p1_a.jpg', 'rose/p1_b.jpg', 'tulip/deep/p2_c.jpg')
    for pattern, groups in {
        r'p(\d)_': ['1', '1', '2'],
        '[^_/]+_': ['p1_', 'p1_', 'p2_'],
        '^[a-z]+(/deep)?': ['rose', 'rose', '/deep'],
    }.items():
        assert read_photos(source, groups=pattern).groups == groups
