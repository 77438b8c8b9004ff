# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Survey of a folder with a fitted model, by command and from Python."""

import csv
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from tiny_photos import write_photos, write_weights
from tiny_run import exit_code

import mmclca
from mmclca.checkpoints.gate.photo_table import PhotoRow
from mmclca.cli.commands import survey as command
from mmclca.cli.main import main
from mmclca.survey import draw_survey, estimate, measure_survey
from mmclca.survey.classify import count_confusions
from mmclca.survey.table import MIN_LABELS


@pytest.fixture(scope='module')
def place(tmp_path_factory):
    """Folder with a ``model`` and photos ``new`` of four classes."""
    folder = tmp_path_factory.mktemp('survey')
    torch.manual_seed(0)
    photos = write_photos(folder)
    mmclca.fit(
        photos,
        folder / 'model',
        weights=write_weights(folder),
        probe_only=True,
        runtime='pytorch',
        budget='0.02GMACs',
    )
    new = write_photos(folder / 'later', per_class=8, seed=1)
    new.rename(folder / 'new')
    learned = next(x for x in photos.rglob('*.*') if x.is_file())
    shutil.copy(learned, folder / 'new' / f'learned{learned.suffix}')
    (folder / 'new/damaged.jpg').write_bytes(b'no photo')
    return folder


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the command; return its exit code, output and errors."""
    monkeypatch.setattr(estimate, 'NUM_SAMPLES', 200)

    def run(*words):
        argv = ['mmclca', 'survey', *map(str, words)]
        monkeypatch.setattr(sys, 'argv', argv)
        code = exit_code(main)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def fill(table, number=99, **labels):
    """Write the class folder per photo as its label, but ``labels``."""
    rows = [*csv.DictReader(table.open(encoding='utf-8-sig'))]
    for row in rows[:number]:
        row['class'] = Path(row['file']).parts[0]
    for position, label in labels.items():
        rows[int(position[1:])]['class'] = label
    with table.open('w') as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture
def table(place, tmp_path):
    """Table of 12 drawn photos, without labels."""
    path = tmp_path / 'survey.csv'
    draw_survey(place / 'model', place / 'new', path, 12)
    return path


def test_command_draws_photos_and_measures_labels(place, run, tmp_path):
    table, counts = tmp_path / 'survey.csv', tmp_path / 'counts.csv'
    words = place / 'model', place / 'new'
    code, out, _ = run(*words, '--label', 12, '--out', table, '--seed', 2)
    assert code == 0 and '--labels' in out and 'Drawn      12 photos' in out
    assert '1 photo unreadable' in out and '1 photo in training' in out
    fill(table)
    new = tmp_path / 'refitted'
    code, out, _ = run(
        *(*words, '--labels', table, '--out', counts, '--refit', new)
    )
    assert code == 0 and 'accuracy (95% CI' in out and 'Promised' in out
    rows = [*csv.DictReader(counts.open(encoding='utf-8-sig'))]
    assert len(rows) == 5 and rows[-1]['class'] == 'none of the classes'
    assert sum(int(row['labeled']) for row in rows) == 12
    assert sum(int(row['predicted']) for row in rows) == 32
    # the labeled photos are training photos of the new model
    learned = (place / 'model/photographs.csv').read_text().count('True')
    assert (new / 'photographs.csv').read_text().count('True') == learned + 12
    assert f'the result is that of {place / "model"}' in out
    assert len(measure_survey(*words, table).labels) == 12
    assert (
        run(new, words[1], '--label', 12, '--out', tmp_path / 'b.csv')[0] == 0
    )


def test_survey_of_all_photos_is_exact(place, tmp_path):
    path = tmp_path / 'all.csv'
    drawn = draw_survey(place / 'model', place / 'new', path, 99).drawn
    assert len(drawn) == 32
    fill(path)
    survey = measure_survey(place / 'model', place / 'new', path)
    assert [x.estimate.value for x in survey.counts] == [8, 8, 8, 8, 0]
    accuracy = survey.estimate.accuracy
    assert accuracy.low == accuracy.value == accuracy.high


def test_unknown_missing_and_misspelled_labels_are_named(place, run, table):
    fill(table, 11, _0='oka', _1='LARCH', _2='elM')
    code, out, _ = run(place / 'model', place / 'new', '--labels', table)
    assert code == 0 and '1 of 12 drawn photos without a label' in out
    assert '2 labels not among the classes' in out
    assert 'oka (do you mean oak?)' in out and 'LARCH' in out
    assert 'missing at random' in out


def test_photos_added_after_the_draw_are_noted(place, run, table):
    fill(table)
    extra = place / 'new/extra.png'
    Image.new('RGB', (64, 64), 'green').save(extra)
    try:
        _, out, _ = run(place / 'model', place / 'new', '--labels', table)
    finally:
        extra.unlink()
    assert 'had 32 photos at the draw, now 33' in out


@pytest.mark.parametrize(
    'words, message',
    [
        ('new --label 9', 'expected at least 10'),
        ('new --refit other', '--refit needs --labels'),
        ('gone --label 12 --out s.csv', 'gone does not exist'),
        ('new/damaged.jpg --out s.csv', 'is a file; give the folder'),
        ('few --label 12 --out s.csv', 'a survey needs at least 10'),
        ('new --labels gone.csv', 'gone.csv does not exist'),
        ('new --labels survey.csv', '3 labels for 12 drawn photos'),
        ('new --labels survey.csv --refit model', 'choose another --refit'),
        ('new --labels survey.csv --refit model/new', 'is in the model'),
        ('model --out s.csv', 'has no photo'),
        ('new --labels survey.csv --out survey.csv', 'replace the labels'),
        ('new --out survey.csv', 'already has 3 labels; choose another --out'),
    ],
)
def test_command_ends_in_one_line_if_input_is_wrong(
    place, run, table, monkeypatch, words, message
):
    fill(table, 3)
    before = table.read_bytes()
    monkeypatch.chdir(place)
    shutil.copytree(place / 'new', 'few', dirs_exist_ok=True)
    for path in [*Path('few').rglob('[1-9].*')]:
        path.unlink()
    arguments = words.replace('survey.csv', str(table)).split()
    code, _, errors = run('model', *arguments)
    assert code == 2 and message in errors.splitlines()[-1]
    assert table.read_bytes() == before


def test_other_folder_than_a_model_is_refused(place, run):
    code, _, errors = run(place / 'new', place / 'new')
    assert code == 2 and 'does not contain model.pth' in errors


def test_confusions_count_tested_photos():
    photos = [
        PhotoRow('1.jpg', 'ash', prediction='elm'),
        PhotoRow('2.jpg', 'ash', prediction='ash'),
        PhotoRow('3.jpg', 'ash'),
    ]
    confusions = count_confusions(photos, ['ash', 'elm'])
    assert np.array_equal(confusions, [[1, 0], [1, 0]])


def test_command_and_library_need_as_many_labels():
    assert command.MIN_LABELS == MIN_LABELS
