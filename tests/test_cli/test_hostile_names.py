# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Class and file names are safe in spreadsheets and terminals."""

import csv
import re
import runpy
import shutil
import sys
from contextlib import redirect_stdout
from io import StringIO

import pytest
import torch
from process_state import kept
from tiny_export import INFER
from tiny_photos import write_photos, write_weights
from tiny_run import CLASSES, exit_code

import mmclca
from mmclca.cli.main import main
from mmclca.datasets.photos import read_photos
from mmclca.fitting import FittedModel
from mmclca.utils.files import read_rows, write_rows

NAMES = ('=cmd|x!A0', '\x1b[31mrose', '-2+3', "'=tulip")
SIGNS = ('=', '+', '-', '@', '\t', '\r')
CONTROLS = re.compile(r'[\x00-\x09\x0b-\x1f\x7f-\x9f]')


@pytest.fixture(scope='module')
def fitted(tmp_path_factory):
    """Folder with ``photos`` and a ``model``, and the output of fit."""
    folder = tmp_path_factory.mktemp('names')
    photos = write_photos(folder)
    for old, new in zip(CLASSES, NAMES, strict=True):
        (photos / old).rename(photos / new)
    for path in list((photos / NAMES[1]).iterdir())[1:]:
        path.unlink()  # a small class is named in a warning
    torch.manual_seed(0)
    weights = write_weights(folder)
    with redirect_stdout(StringIO()) as screen, kept():
        out = folder / 'model'
        options = dict(weights=weights, runtime='pytorch', probe_only=True)
        mmclca.fit(photos, out, **options)
    return folder, screen.getvalue()


def cells_in(path):
    with path.open(newline='') as file:
        return [cell for row in csv.reader(file) for cell in row]


def test_fit_escapes_names_in_output_and_tables(fitted):
    folder, said = fitted
    log = (folder / 'model/log.txt').read_text()
    for text in (said, log):
        assert r'(\x1b[31mrose)' in text
        assert not CONTROLS.search(text)
    cells = cells_in(folder / 'model/photographs.csv')
    assert "'=cmd|x!A0" in cells and "''=tulip" in cells
    assert not [cell for cell in cells if cell.startswith(SIGNS)]


def test_tables_of_fit_give_the_original_names(fitted, tmp_path):
    shutil.copytree(fitted[0] / 'model', tmp_path / 'model')
    model = FittedModel(tmp_path / 'model')
    new = write_photos(tmp_path, seed=2) / 'elm'
    model.add_class(new, '@larch')
    assert model.classes == sorted(NAMES) + ['@larch']
    used = read_rows(tmp_path / 'model/photographs.csv')
    assert {row['class'] for row in used} == {*NAMES, '@larch'}
    again = read_photos(tmp_path / 'model/photographs.csv')
    assert again.classes == sorted([*NAMES, '@larch'])


def test_predict_escapes_names_in_output_and_table(
    fitted, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    write_photos(tmp_path)
    (tmp_path / 'photographs/ash/0.png').rename('-a\x1b\n.png')
    (tmp_path / '=b\x1b.png').write_text('no image')
    model = str(fitted[0] / 'model')
    words = ['predict', model, '=b\x1b.png', './*.png', '--out', 'a.csv']
    monkeypatch.setattr(sys, 'argv', ['mmclca', *words])
    with pytest.raises(SystemExit, match='^1$'):
        main()
    out, error = capsys.readouterr()
    assert r'=b\x1b.png is unreadable' in error
    assert r'./-a\x1b\n.png  ' in out
    assert not CONTROLS.search(out)
    cells = cells_in(tmp_path / 'a.csv')
    assert "'=b\x1b.png" in cells and "'=cmd|x!A0" in cells
    assert not [cell for cell in cells if cell.startswith(SIGNS)]


@pytest.mark.parametrize('verb', ['report', 'predict'])
def test_error_escapes_control_characters(verb, tmp_path, monkeypatch, capsys):
    words = ['mmclca', verb, f'{tmp_path}/a\x1b[31m\nb', '*.png']
    monkeypatch.setattr(sys, 'argv', words[: 4 if verb == 'predict' else 3])
    assert exit_code(main) == 2
    *_, line = capsys.readouterr().err.splitlines()
    assert r'a\x1b[31m' in line and not CONTROLS.search(line)


def test_write_rows_escapes_formulas_and_read_rows_restores_them(tmp_path):
    texts = [*NAMES, "''=a", "'a", '', 'a,b"c\nd', '\t1', '-0.5']
    path = tmp_path / 'new/table.csv'
    write_rows(path, [['text', 'number'], *((x, -0.5) for x in texts)])
    rows = read_rows(path)
    assert [row['text'] for row in rows] == texts
    assert {row['number'] for row in rows} == {'-0.5'}
    assert cells_in(path)[-2:] == ["'-0.5", '-0.5']


def test_infer_onnx_escapes_names():
    script = runpy.run_path(str(INFER))
    said = ["'=cmd|x!A0", '\x1b[31mrose', "'-2+3", "''=tulip", -0.5]
    assert [*map(script['to_cell'], [*NAMES, -0.5])] == said
    assert script['printable']('\x1b[31m\nrose') == r'\x1b[31m\nrose'


def test_read_rows_names_column_if_missing(tmp_path):
    write_rows(tmp_path / 'a.csv', [['path', 'class'], ['x', 'ash']])
    with pytest.raises(ValueError, match="a.csv: column 'used'"):
        read_rows(tmp_path / 'a.csv', 'path', 'used')


def test_read_rows_names_line_if_cell_is_too_large(tmp_path):
    write_rows(tmp_path / 'a.csv', [['path'], ['x' * 140_000]])
    with pytest.raises(ValueError, match='line 2'):
        read_rows(tmp_path / 'a.csv')
