# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import os
from unicodedata import normalize

import pandas as pd
import pytest

from mmclca.datasets.photos import read_photos

NAMES = 'a.jpg', 'b.jpg', 'c.jpg', 'deep/d e.png'


@pytest.fixture
def folder(make):
    """Folder of photos without class folders."""
    return make(*(f'photos/{name}' for name in NAMES)) / 'photos'


def read(folder, content, name='table.csv', **kwargs):
    table = folder.parent / name
    table.write_text(content, 'utf-8')
    return read_photos(folder, labels=table, **kwargs)


def classes_of(photos, folder):
    """Class by path."""
    paths = [path.removeprefix(f'{folder}/') for path in photos.paths]
    return dict(zip(paths, photos.names, strict=True))


CLASSES = dict(zip(NAMES, ('rose', 'tulip') * 2, strict=True))
ROWS = ''.join(f'{name},{label}\n' for name, label in CLASSES.items())


@pytest.mark.parametrize(
    'titles',
    ['', 'file,class\n', 'Image,Species\n', 'x,y\n', 'name,sort\n', ',\n'],
)
def test_columns_are_recognized_by_title_or_content(folder, titles):
    photos = read(folder, titles + ROWS)
    assert classes_of(photos, folder) == CLASSES
    assert photos.source == f'{folder.parent}/table.csv'
    assert photos.splits == [''] * 4 and photos.groups is None
    assert photos.unused == {}


@pytest.mark.parametrize('suffix', ['.xlsx', '.ods'])
def test_spreadsheet_is_read(folder, suffix, monkeypatch):
    pytest.importorskip(dict(xlsx='openpyxl', ods='odf')[suffix[1:]])
    table = folder.parent / f'table{suffix}'
    numbers = [dict(rose=1, tulip=2)[name] for name in CLASSES.values()]
    rows = pd.DataFrame({'file': list(CLASSES), 'class': numbers})
    rows.to_excel(table, index=False)
    photos = read_photos(folder, labels=table)
    assert photos.classes == ['1', '2'] and photos.labels == [0, 1, 0, 1]
    monkeypatch.setattr('mmclca.utils.extras.find_spec', lambda name: None)
    with pytest.raises(ImportError, match=r'mmclca\[tables\]'):
        read_photos(folder, labels=table)


def test_split_and_group_columns_are_read(folder):
    content = (
        'species,plant,photo,split\nrose,7,a.jpg,Train\ntulip,,b.jpg,\n'
        'rose,7,c.jpg,validation\ntulip,8,deep/d e.png,test\n'
    )
    photos = read(folder, content, groups='plant')
    assert photos.splits == ['train', '', 'val', 'test']
    assert photos.groups == ['7', f'{folder}/b.jpg', '7', '8']
    assert read(folder, content, groups='^.').groups == ['a', 'b', 'c', 'd']


def test_split_column_is_read_if_titles_are_missing(folder):
    content = (
        'TRAIN,a.jpg,rose\nTRAIN,b.jpg,tulip\nVALIDATION,c.jpg,rose\n'
        'TEST,deep/d e.png,tulip\n'
    )
    photos = read(folder, content)
    assert photos.splits == ['train', 'train', 'val', 'test']
    assert photos.names == ['rose', 'tulip'] * 2
    with pytest.raises(ValueError, match='first line with titles'):
        read(folder, content.replace('TRAIN', 'x'))


def test_files_are_found_next_to_the_table_and_by_windows_paths(folder, make):
    make('x.jpg')
    content = f'{ROWS}x.jpg,fern\ndeep\\d e.png,tulip\n{folder}/a.jpg,rose\n'
    photos = classes_of(read(folder, content), folder)
    assert list(photos) == [*CLASSES, f'{folder.parent}/x.jpg']


def test_table_is_accepted_instead_of_its_folder(folder):
    table = folder / 'classes.csv'
    table.write_text(ROWS)
    assert classes_of(read_photos(table), folder) == CLASSES


def test_unusable_rows_and_files_are_left_out(folder, make):
    make('photos/e.jpg')
    content = 'file,class\na.jpg,rose\nb.jpg,tulip\nb.jpg,rose\nc.jpg,\n,\n'
    photos = read(folder, f'{content}a.jpg,rose\ne.jpg,tulip\n')
    assert classes_of(photos, folder) == {'a.jpg': 'rose', 'e.jpg': 'tulip'}
    reasons = {path: str(note) for path, note in photos.unused.items()}
    assert reasons == {
        f'{folder}/b.jpg': 'with several classes in table.csv',
        f'{folder}/c.jpg': 'without a class in table.csv',
        f'{folder}/deep/d e.png': 'not in table.csv',
    }


MISSING = ''.join(f'{i}.jpg,rose\n' for i in range(20))


@pytest.mark.parametrize(
    'content, name, term',
    [
        (ROWS + MISSING, 'a.csv', '20 files .*0.jpg, 1.jpg, 2'),
        (ROWS + ',rose\n', 'a.csv', 'an empty cell'),
        ('id,label\na,rose\nb,fern\n', 'a.csv', 'missing'),
        ('file,a,b\na.jpg,rose,1\nb.jpg,fern,2\n', 'a.csv', 'of classes'),
        ('file,class,class\na.jpg,x,1\nb.jpg,y,2\n', 'a.csv', 'of classes'),
        ('x,y,class\na.jpg,b.jpg,fern\nc.jpg,a.jpg,ash\n', 'a.csv', 'files'),
        ('file,class,split\na.jpg,x,may\nb.jpg,y,\n', 'a.csv', "'may'"),
        (ROWS, 'table.doc', 'table.doc'),
        ('', 'a.csv', 'empty'),
        ('file,class\n', 'a.csv', 'found none'),
        (ROWS.replace('tulip', 'rose'), 'a.csv', "only 'rose'"),
    ],
)
def test_table_is_refused(folder, make, content, name, term):
    make('photos/a.png')
    with pytest.raises((FileNotFoundError, ValueError), match=term) as error:
        read(folder, content, name)
    assert '\n' not in str(error.value)
    with pytest.raises(FileNotFoundError, match='gone'):
        read_photos(folder, labels=folder / 'gone.csv')


@pytest.mark.parametrize('titles', ['file,species,class', 'x,File,class'])
def test_preferred_titles_resolve_ambiguity(folder, titles):
    photos = read(folder, f'{titles}\nb.jpg,a.jpg,1\na.jpg,c.jpg,2\n')
    column = titles.lower().split(',').index('file')
    expected = (['b.jpg', 'a.jpg'], ['a.jpg', 'c.jpg'])[column]
    assert [*map(os.path.basename, photos.paths)] == expected
    assert photos.classes == ['1', '2']


@pytest.mark.parametrize(
    'name, written',
    [
        ('Blätter.jpg', 'Blätter.jpg'),
        ('IMG_1.JPG', 'img_1.jpg'),
        ('ash0.jpg', 'ash0'),
        ('deep/e.jpg', 'e.jpg'),
        ('a, b.jpg', 'a, b.jpg'),
    ],
)
def test_files_are_found_by_other_spellings(make, name, written):
    files = ('p/other.jpg', normalize('NFD', f'p/{name}'))
    root = make(*files)
    rows = f'image_id,label\n{written},rose\nother.jpg,ash\n'
    photos = read(root / 'p', rows)
    assert photos.paths == [str(root / x) for x in files[::-1]]
    assert photos.names == ['rose', 'ash'] and photos.unused == {}


@pytest.mark.parametrize(
    'title, yes, no, splits',
    [
        ('is_train', '1', '0', ['train', 'test']),
        ('is_valid', 'True', 'FALSE', ['val', 'train']),
        ('split', 'Training set', 'test_2', ['train', 'test']),
    ],
)
def test_splits_are_read_from_flags_and_words(folder, title, yes, no, splits):
    content = f'file,label,{title}\na.jpg,rose,{yes}\nb.jpg,tulip,{no}\n'
    assert read(folder, content).splits == splits


def test_fold_column_is_noted(folder):
    photos = read(folder, 'file,sort,fold\na.jpg,rose,1\nb.jpg,tulip,2\n')
    assert photos.classes == ['rose', 'tulip'] and 'fold' in str(
        photos.notes[0]
    )


def test_spellings_of_a_class_are_joined(folder):
    content = 'a.jpg,Möhre\nb.jpg,Mo\u0308hre\u200b\nc.jpg,\xa0Mö\xadhre \n'
    photos = read(folder, f'{content}deep/d e.png,tulip\n')
    assert photos.counts() == dict(Möhre=3, tulip=1)
    content = 'a.jpg,1\nb.jpg,1.0\nc.jpg,2.\ndeep/d e.png,2\n'
    assert read(folder, content).counts() == {'1': 2, '2': 2}
