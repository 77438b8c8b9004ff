# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Table of drawn photos: spreadsheets, missing and unexpected labels."""

import pytest
from PIL import Image

from mmclca.errors import Error
from mmclca.survey.table import (
    DrawnPhoto,
    check_survey_table,
    read_survey_table,
    write_survey_table,
)

NAMES = ['a/1.jpg', 'a/2.jpg', '=b.jpg', 'größe.jpg']
DRAWN = [DrawnPhoto(x, 1 + i // 2, 2, 7) for i, x in enumerate(NAMES)]


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / 'new'
    for name in [*NAMES, 'other.jpg']:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new('RGB', (8, 8)).save(path)
    return folder


def write(path, *labels, end=(), **options):
    """Write the rows of the drawn photos with labels."""
    rows = [
        f'{x.path};{label};{x.stratum};{x.drawn};{x.photos}'
        for x, label in zip(DRAWN, labels, strict=False)
    ]
    lines = ['file;class;stratum;drawn;photos', *rows, *end]
    path.write_text('\r\n'.join(lines), **options)
    return path


@pytest.mark.parametrize('suffix', ['.csv', '.xlsx'])
def test_written_table_is_read_with_all_photos(folder, tmp_path, suffix):
    if suffix == '.xlsx':
        pytest.importorskip('openpyxl')
    path = tmp_path / f's{suffix}'
    write_survey_table(path, DRAWN)
    check_survey_table(path)  # without a label, it may be written again
    table = read_survey_table(path, folder)
    assert [x.path for x in table.photos] == [str(folder / x) for x in NAMES]
    assert (table.labeled, table.drawn, table.total) == ([], 4, 14)


@pytest.mark.parametrize('encoding', ['utf-8-sig', 'utf-16', 'cp1252'])
def test_table_saved_by_a_spreadsheet_program_is_read(
    folder, tmp_path, encoding
):
    path = write(
        tmp_path / 's.csv', 'ash', ' elm ', '', 'fir', encoding=encoding
    )
    table = read_survey_table(path, folder)
    labels = {x.path: x.label for x in table.labeled}
    assert [*labels.values()] == ['ash', 'elm', 'fir']
    assert str(folder / 'größe.jpg') in labels


def test_labels_of_photos_that_were_not_drawn_are_separate(folder, tmp_path):
    end = ['other.jpg;ash;;;', ';;;;']
    path = write(tmp_path / 's.csv', 'ash', 'ash', 'ash', 'ash', end=end)
    table = read_survey_table(path, folder)
    assert table.not_drawn == ['other.jpg'] and len(table.labeled) == 4


def test_deleted_rows_count_as_missing(folder, tmp_path):
    path = write(tmp_path / 's.csv', 'ash', 'ash', 'ash')
    table = read_survey_table(path, folder)
    assert (table.drawn, len(table.labeled), table.total) == (4, 3, None)


@pytest.mark.parametrize(
    'end, message',
    [
        (['a/1.jpg;elm;1;2;7'], "'ash' and 'elm'"),
        (['other.jpg;elm;1;2;7'], 'stratum 1 has 3 photos, expected 2'),
        (['other.jpg;elm;3;two;7'], 'expected numbers'),
        (['other.jpg;elm;3;;7'], 'expected numbers'),
        (['gone.jpg;elm;3;2;7'], 'gone.jpg has a label but is missing'),
    ],
)
def test_table_is_refused_if_rows_contradict(folder, tmp_path, end, message):
    path = write(tmp_path / 's.csv', 'ash', 'ash', 'ash', 'ash', end=end)
    with pytest.raises((Error, FileNotFoundError), match=message) as error:
        read_survey_table(path, folder)
    assert '\n' not in str(error.value)


def test_other_table_is_refused(folder, tmp_path):
    path = tmp_path / 's.csv'
    path.write_text('file,class\na/1.jpg,ash\n')
    with pytest.raises(Error, match="column 'stratum' is missing"):
        read_survey_table(path, folder)
    with pytest.raises(Error, match='is not a survey table'):
        check_survey_table(path)
    with pytest.raises(FileNotFoundError, match='does not exist'):
        read_survey_table(tmp_path / 'gone.csv', folder)


def test_labels_are_not_overwritten(tmp_path):
    path = write(tmp_path / 's.csv', 'ash', '', 'elm', '')
    with pytest.raises(Error, match='already has 2 labels'):
        check_survey_table(path)
