# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""predict, ONNX script, FittedModel and page give the same predictions."""

import csv
import json
import subprocess
import sys
from dataclasses import replace

import pytest
from installed import NEEDS_COMPILER
from tiny_export import INFER
from tiny_run import CLASSES

from mmclca.apis import TokenReductionInferencer
from mmclca.fitting import FittedModel
from mmclca.fitting.fit_folder import FitFolder
from mmclca.page import open_model
from mmclca.page.prediction import classify

COLUMNS = ['pred_class', 'pred_score', 'known', 'known_score']
YES_NO = {True: 'yes', False: 'no'}


@pytest.fixture
def photos(place):
    return place / 'photographs' / 'test'


@pytest.fixture(params=[True, False])
def model(request, copy, photos):
    """Folder of a model that flags half of the photos, or none."""
    path = copy.folder / 'threshold.json'
    scores = sorted(row['known_score'] for row in copy.predict(photos))
    threshold = json.loads(path.read_text())
    threshold['threshold'] = sum(scores[3:5]) / 2
    path.write_text(json.dumps(threshold))
    if not request.param:
        path.unlink()
    return copy.folder


def rows_of(table):
    """Return five cells per row, and check the column titles."""
    header, *rows = csv.reader(table.open())
    ranks = [f'{x}_{i}' for i in (1, 2, 3) for x in ('label', 'name', 'score')]
    titles = ['image', *COLUMNS, *ranks, 'error']
    if header == titles:
        return [row[:5] for row in rows]
    # predict adds two columns for spreadsheets
    assert header == ['image', 'result', 'confidence', *titles[1:]]
    for _, result, confidence, name, score, known, *_ in rows:
        expected = ('unknown', '0') if known == 'no' else (name, score)
        assert (result, confidence) == expected
    return [[row[0], *row[3:7]] for row in rows]


def check(rows, expected):
    """Compare rows, with a tolerance for the scores."""
    for row, (image, name, score, known, how) in zip(
        rows, expected, strict=True
    ):
        assert [*row[:2], row[3]] == [image, name, known]
        assert float(row[2]) == pytest.approx(float(score), abs=1e-4)
        assert row[4] == how or abs(float(row[4]) - float(how)) < 1e-4


def test_all_ways_give_the_same_rows(model, photos, run, tmp_path, capsys):
    table = tmp_path / 'predict.csv'
    assert not run('predict', model, photos, '--topk', 3, '--out', table)
    expected = rows_of(table)
    check(map(in_words, FittedModel(model).predict(photos)), expected)
    check(on_page(model, [row[0] for row in expected]), expected)
    known, rejects = [row[3] for row in expected], model_in(model).threshold
    said = capsys.readouterr().out
    assert len(known) == 8 and {row[1] for row in expected} <= {*CLASSES}
    assert known.count('no') == said.count('unknown?') == 4 * bool(rejects)
    assert known.count('') == 8 * (not rejects)


@NEEDS_COMPILER
@pytest.mark.slow
def test_onnx_script_gives_the_same_rows(model, photos, run, tmp_path):
    pytest.importorskip('onnxscript', reason='pip install "mmclca[deploy]"')
    tables = tmp_path / 'predict.csv', tmp_path / 'onnx.csv'
    run('predict', model, photos, '--topk', 3, '--out', tables[0])
    run('export', model)
    words = [model / 'model.onnx', photos, '--topk', '3']
    subprocess.run(
        [sys.executable, INFER, *words, '--out', tables[1]], check=True
    )
    check(*map(rows_of, tables[::-1]))


def in_words(found):
    """Format a result of FittedModel.predict as a row."""
    assert [*found] == ['image', *COLUMNS]
    image, name, score, known, how = found.values()
    if known is None:
        return [image, name, score, '', '' if how is None else how]
    return [image, name, score, YES_NO[known], how]


def on_page(folder, images):
    """Yield rows of the results shown on the page for the fitted model."""
    opened = open_model(folder)
    start, model = opened.variants.start, opened.inferencer
    if model.threshold:  # scores of another model cannot be compared
        other = replace(start, keep_rate=start.keep_rate / 2)
        assert opened.variants.at(other).threshold is None
    for image in images:
        prediction = classify(model, model.prepare(image))
        name, score = next(iter(prediction.scores.items()))
        known, known_score = prediction.is_known, prediction.known_score
        if known is None:
            yield [image, name, score, '', '']
        else:
            yield [image, name, score, YES_NO[known], known_score]


def test_page_shows_accuracy_and_unchanged_training_photos(copy, place):
    table = copy.folder / 'photographs.csv'
    model = open_model(copy.folder)
    assert 'Of 100 new photos' in model.about
    row, *_ = FitFolder(copy.folder).read_used_photos()
    packed = model.inferencer.prepare(row.path)
    first, *more = model.find_similar(packed['inputs'])
    assert first.caption == f'{row.label} 1.000' and len(more) == 7
    # a folder from elsewhere names another file of this computer
    other = next((place / 'larch').iterdir())
    table.write_text(table.read_text().replace(row.path, str(other)))
    assert len(open_model(copy.folder).find_similar(packed['inputs'])) == 7
    table.write_text(''.join(table.read_text().splitlines(True)[:-9]))
    with pytest.raises(ValueError, match='photographs.csv is damaged'):
        open_model(copy.folder)


def model_in(folder):
    return TokenReductionInferencer(folder, device='cpu')
