# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pandas as pd
import pytest

from mmclca.datasets.photos.cells import read_cells

ROWS = dict(file=['a.jpg', 'b.jpg'], sort=['rose', 'ash'])


@pytest.fixture
def read(tmp_path):
    """Function to read cells from a content."""

    def read(content, encoding='utf-8', **kwargs):
        table = tmp_path / 'table.csv'
        table.write_bytes(content.encode(encoding))
        return read_cells(table, **kwargs)

    return read


@pytest.mark.parametrize(
    'encoding, names',
    [
        ('gbk', '苹果 梨 桃 葡萄'),
        ('big5', '銀杏 楓樹 松樹'),
        ('shift_jis', 'りんご なし 桜'),
        ('shift_jis', '桜 松 杉'),
        ('euc_kr', '사과 배 복숭아'),
        ('cp1252', 'Möhre Größe café'),
        ('cp1250', 'jabłoń dąb'),
        ('cp1250', 'tölgy fűz kőris'),
        ('cp1254', 'ağaç Nazlı'),
        ('cp1251', 'Клён дуб'),
    ],
)
def test_encoding_is_detected_by_content(read, encoding, names):
    names = names.split()
    rows = ''.join(f'{i}.jpg,{name}\n' for i, name in enumerate(names))
    cells, notes = read(f'file,class\n{rows}', encoding)
    assert cells['class'] == names and 'UTF-8' in str(notes[0])


@pytest.mark.parametrize(
    'encoding', ['utf-8-sig', 'utf-16', 'utf-16-le', 'utf-16-be', 'iso2022_jp']
)
def test_note_is_omitted_if_encoding_is_certain(read, encoding):
    cells, notes = read('file,class\na.jpg,桜\n', encoding)
    assert cells == dict(file=['a.jpg'], **{'class': ['桜']})
    assert notes == []


def test_encoding_is_detected_by_file_names(read):
    content = 'file,class\n벚꽃.jpg,튤립\n'  # resembles GBK
    cells, _ = read(content, 'euc_kr')
    assert cells['file'] != ['벚꽃.jpg']
    cells, _ = read(content, 'euc_kr', file_names=['벚꽃.jpg'])
    assert cells['file'] == ['벚꽃.jpg']


@pytest.mark.parametrize(
    'content',
    [
        'sep=;\r\nfile;sort\r\na.jpg;rose\r\nb.jpg;ash\r\n',
        '# by me, in May\nfile,sort\na.jpg,rose\n# b\nb.jpg,ash\n',
        'file,sort\na.jpg,rose\n\n,,\nb.jpg,ash\n,,,\n',
        'file,sort,,\na.jpg,rose,,\nb.jpg,ash\n',
        'file|sort\na.jpg|"rose"\nb.jpg|ash\n',
        "file,sort\n'a.jpg','rose'\n'b.jpg','ash'\n",
        '\n\nfile\tsort\ra.jpg\trose\rb.jpg\tash\r',
    ],
)
def test_rows_of_any_program_are_read(read, content):
    assert read(content) == (ROWS, [])


def test_separator_is_selected_by_all_lines_and_rows_are_padded(read):
    cells, _ = read('file;sort\na.jpg;red, rose\nb.jpg;pale, ash\n')
    assert cells['sort'] == ['red, rose', 'pale, ash']
    cells, _ = read('file,sort,note\na.jpg,rose\nb.jpg,ash,x\n')
    assert cells == dict(ROWS, note=['', 'x'])


@pytest.mark.parametrize('cells', ['a.jpg,rose,red', 'a.jpg,' + 140_000 * 'x'])
def test_error_names_line_if_row_is_refused(read, cells):
    with pytest.raises(ValueError, match='line 3'):
        read(f'file,sort\nb.jpg,ash\n{cells}\n')


def test_empty_rows_of_a_sheet_are_skipped(tmp_path):
    pytest.importorskip('openpyxl')
    rows = 'file sort', ' ', 'a.jpg rose', 'b.jpg ash'
    sheet = pd.DataFrame([row.split(' ') for row in rows]).replace('', None)
    sheet.to_excel(tmp_path / 'a.xlsx', index=False, header=False)
    assert read_cells(tmp_path / 'a.xlsx') == (ROWS, [])
