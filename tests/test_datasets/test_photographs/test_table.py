# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from unicodedata import normalize

import pandas as pd
import pytest

from mmclca.datasets.photographs import read_photographs


@pytest.fixture
def place(tmp_path):
    """Photographs that no folder sorts."""
    for name in ('a.jpg', 'b.jpg', 'c.jpg', 'deep/d e.png'):
        path = tmp_path / 'photos' / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path / 'photos'


def read(place, text, name='table.csv', encoding='utf-8', **kwargs):
    table = place.parent / name
    table.write_bytes(text.encode(encoding))
    return read_photographs(place, labels=table, **kwargs)


def named(photographs, place):
    """Class by path."""
    return {
        path.removeprefix(f'{place}/'): photographs.classes[label]
        for path, label in zip(
            photographs.paths, photographs.labels, strict=True
        )
    }


def refusal(*args, kind=ValueError, **kwargs):
    with pytest.raises(kind) as error:
        read(*args, **kwargs)
    text = str(error.value)
    assert '\n' not in text
    return text


ROWS = 'a.jpg,rose\nb.jpg,tulip\nc.jpg,rose\ndeep/d e.png,tulip\n'
CLASSES = {
    'a.jpg': 'rose',
    'b.jpg': 'tulip',
    'c.jpg': 'rose',
    'deep/d e.png': 'tulip',
}


@pytest.mark.parametrize(
    'titles',
    ['', 'file,class\n', 'Image,Species\n', 'x,y\n', 'name,sort\n', ',\n'],
)
def test_titles_and_none(place, titles):
    found = read(place, titles + ROWS)
    assert named(found, place) == CLASSES
    assert found.source == f'{place.parent}/table.csv'
    assert found.splits == [''] * 4 and found.groups is None
    assert found.left_out == {}


@pytest.mark.parametrize('separator', ',;\t|')
@pytest.mark.parametrize('encoding', ['utf-8-sig', 'utf-16', 'cp1252'])
def test_separators_and_encodings(place, separator, encoding):
    text = ('file,class\r\n' + ROWS).replace('rose', '"Nießwurz"')
    found = read(place, text.replace(',', separator), encoding=encoding)
    assert found.classes == ['Nießwurz', 'tulip'] and len(found) == 4


@pytest.mark.parametrize('ending', ['.xlsx', '.ods'])
def test_spreadsheets(place, ending):
    pytest.importorskip(dict(xlsx='openpyxl', ods='odf')[ending[1:]])
    rows = [line.split(',') for line in ROWS.splitlines()]
    table = place.parent / f'table{ending}'
    numbers = dict(rose=1, tulip=2)
    rows = [(file, numbers[name]) for file, name in rows]
    pd.DataFrame(rows, columns=['file', 'class']).to_excel(table, index=False)
    found = read_photographs(place, labels=table)
    assert found.classes == ['1', '2'] and found.labels == [0, 1, 0, 1]


def test_spreadsheets_need_a_package(place, monkeypatch):
    monkeypatch.setattr('mmclca.utils.extras.find_spec', lambda name: None)
    (place.parent / 'table.xlsx').touch()
    with pytest.raises(ImportError, match=r'openpyxl .*"mmclca\[tables\]"'):
        read_photographs(place, labels=place.parent / 'table.xlsx')


def test_columns_of_splits_and_groups(place):
    text = (
        'species,plant,photo,split\nrose,7,a.jpg,Train\ntulip,,b.jpg,\n'
        'rose,7,c.jpg,validation\ntulip,8,deep/d e.png,test\n'
    )
    found = read(place, text, groups='plant')
    assert found.splits == ['train', '', 'val', 'test']
    assert found.groups == ['7', f'{place}/b.jpg', '7', '8']
    assert read(place, text, groups='^.').groups == ['a', 'b', 'c', 'd']
    text = text.replace('validation', 'monday')
    assert "column 'split': 'monday'" in refusal(place, text)


def test_files_beside_the_table_and_as_on_windows(place):
    (place.parent / 'x.jpg').touch()
    text = f'{ROWS}x.jpg,fern\ndeep\\d e.png,tulip\n{place}/a.jpg,rose\n'
    found = read(place, text)
    assert list(named(found, place)) == [*CLASSES, f'{place.parent}/x.jpg']


def test_a_table_in_place_of_the_folder(place):
    table = place / 'classes.csv'
    table.write_text(ROWS)
    assert named(read_photographs(table), place) == CLASSES


def test_what_is_left_out(place):
    text = 'file,class\na.jpg,rose\nb.jpg,tulip\nb.jpg,rose\nc.jpg,\n,\n'
    text += 'a.jpg,rose\n'
    (place / 'e.jpg').touch()
    text += 'e.jpg,tulip\n'
    found = read(place, text)
    assert named(found, place) == {'a.jpg': 'rose', 'e.jpg': 'tulip'}
    assert found.left_out == {
        f'{place}/b.jpg': 'with several classes in table.csv',
        f'{place}/c.jpg': 'without a class in table.csv',
        f'{place}/deep/d e.png': 'not in table.csv',
    }


def test_missing_files(place):
    text = ROWS + ''.join(f'{i}.jpg,rose\n' for i in range(20))
    text = refusal(place, text, kind=FileNotFoundError)
    assert '20 files are missing, such as 0.jpg, 1.jpg, 2' in text
    text = refusal(place, ROWS + ',rose\n', kind=FileNotFoundError)
    assert '1 files are missing, such as (an empty cell)' in text


@pytest.mark.parametrize(
    'titles, what',
    [
        ('file,a,b', "classes among 'file', 'a', 'b'"),
        ('file,species,label', 'of classes'),
        ('file,class,class', 'of classes'),
    ],
)
def test_columns_that_are_not_clear(place, titles, what):
    rows = 'a.jpg,rose,1\nb.jpg,tulip,2\n'
    assert what in refusal(place, f'{titles}\n{rows}')
    text = read(place, f'file,species,class\n{rows}')
    assert text.classes == ['1', '2']


def test_two_columns_of_files(place):
    text = 'front,back,class\na.jpg,b.jpg,rose\nc.jpg,a.jpg,tulip\n'
    assert "files among 'front', 'back'" in refusal(place, text)
    found = read(place, text.replace('front', 'File'))
    assert list(named(found, place)) == ['a.jpg', 'c.jpg']


def test_what_is_no_table(place):
    text = refusal(place, ROWS, 'table.doc')
    assert 'table.doc is not a table' in text
    assert 'empty' in refusal(place, '')
    assert 'line 2' in refusal(place, 'file,class\na.jpg,rose,red\n')
    text = refusal(place, 'file,class\n')
    assert text.endswith("found none in the column 'class'")
    with pytest.raises(FileNotFoundError, match='table .*gone'):
        read_photographs(place, labels=place / 'gone.csv')


def test_one_class(place):
    text = refusal(place, ROWS.replace('tulip', 'rose'))
    assert 'two classes' in text
    assert text.endswith("only 'rose' in the column 'column 2'")


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
def test_table_finds_files_if_names_are_spelled_otherwise(
    tmp_path, name, written
):
    files = ('other.jpg', normalize('NFD', name))
    for file in files:
        (tmp_path / 'p' / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / 'p' / file).touch()
    rows = f'image_id,label\n{written},rose\nother.jpg,ash\n'
    found = read(tmp_path / 'p', rows)
    assert found.paths == [str(tmp_path / 'p' / x) for x in files[::-1]]
    assert found.names == ['rose', 'ash'] and found.left_out == {}


def test_table_refuses_name_without_ending_if_files_are_several(place):
    (place / 'a.png').touch()
    text = 'image_id,label\na,rose\nb,tulip\nc,rose\n'
    assert 'missing' in refusal(place, text, kind=FileNotFoundError)


@pytest.mark.parametrize(
    'title, yes, no, splits',
    [
        ('is_train', '1', '0', ['train', 'test']),
        ('is_valid', 'True', 'FALSE', ['val', 'train']),
        ('split', 'Training set', 'test_2', ['train', 'test']),
    ],
)
def test_table_reads_splits_if_column_says_yes_or_no(
    place, title, yes, no, splits
):
    text = f'file,label,{title}\na.jpg,rose,{yes}\nb.jpg,tulip,{no}\n'
    assert read(place, text).splits == splits


def test_table_notes_folds(place):
    found = read(place, 'file,sort,fold\na.jpg,rose,1\nb.jpg,tulip,2\n')
    assert found.classes == ['rose', 'tulip'] and 'fold' in found.notes[0]


def test_table_joins_classes_if_only_programs_tell_them_apart(place):
    text = 'a.jpg,Möhre\nb.jpg,Mo\u0308hre\u200b\nc.jpg,\xa0Mö\xadhre \n'
    found = read(place, f'{text}deep/d e.png,tulip\n')
    assert found.counts() == dict(Möhre=3, tulip=1)
    text = 'a.jpg,1\nb.jpg,1.0\nc.jpg,2.\ndeep/d e.png,2\n'
    assert read(place, text).counts() == {'1': 2, '2': 2}
