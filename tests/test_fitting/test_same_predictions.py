# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""predict, ONNX script, FittedModel and page give the same predictions."""

import csv
import json
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO

import onnx
import pytest
import torch
from process_state import kept
from tiny_export import INFER
from tiny_photographs import write_photographs, write_weights
from tiny_run import CLASSES

import mmclca
from mmclca.apis import TokenReductionInferencer
from mmclca.cli.verbs import main
from mmclca.fitting import FittedModel
from mmclca.page import Variants
from mmclca.page.variants import predict_photo

pytestmark = [pytest.mark.slow, pytest.mark.first]
COLUMNS = ['pred_class', 'pred_score', 'known', 'known_score']
YES_NO = {True: 'yes', False: 'no'}


def run(*words):
    """Run a command line and return its output."""
    screen = StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(screen):
        patch.setattr(sys, 'argv', ['mmclca', *map(str, words)])
        main()
    return screen.getvalue()


@pytest.fixture(scope='module')
def place(tmp_path_factory):
    """Folder with a ``model``, and ``new`` photos, half unknown."""
    pytest.importorskip('onnxscript', reason='pip install "mmclca[deploy]"')
    folder = tmp_path_factory.mktemp('same')
    torch.manual_seed(0)
    photographs, weights = write_photographs(folder), write_weights(folder)
    new = write_photographs(folder / 'new', seed=2)
    with redirect_stdout(StringIO()), kept():
        out = folder / 'model'
        options = dict(weights=weights, runtime='pytorch', probe_only=True)
        mmclca.fit(photographs, out, **options)
        found = FittedModel(out).predict(new)
        scores = sorted(row['known_score'] for row in found)
        threshold = json.loads((out / 'threshold.json').read_text())
        threshold['threshold'] = sum(scores[7:9]) / 2
        (out / 'threshold.json').write_text(json.dumps(threshold))
        run('export', out)
    return folder


@pytest.fixture(params=[True, False])
def model(request, place, tmp_path):
    """Copy of the model, with or without its threshold."""
    folder = tmp_path / 'model'
    shutil.copytree(place / 'model', folder)
    if not request.param:
        (folder / 'threshold.json').unlink()
        file = onnx.load(folder / 'model.onnx')
        facts = {x.key: x.value for x in file.metadata_props}
        onnx.helper.set_model_props(file, dict(facts, threshold='null'))
        onnx.save(file, folder / 'model.onnx')
    return folder


def rows_of(table):
    """Return the first five cells per row, and check the column titles."""
    header, *rows = csv.reader(table.open())
    ranks = [f'{x}_{i}' for i in (1, 2, 3) for x in ('label', 'name', 'score')]
    assert header == ['image', *COLUMNS, *ranks, 'error']
    return [row[:5] for row in rows]


def test_all_ways_give_the_same_rows(model, place, tmp_path):
    photographs, table = place / 'new', tmp_path / 'predict.csv'
    said = run('predict', model, photographs, '--topk', 3, '--out', table)
    expected = rows_of(table)
    words = [model / 'model.onnx', photographs, '--csv', tmp_path / 'onnx.csv']
    subprocess.run([sys.executable, INFER, *words], check=True)
    ways = dict(
        script=rows_of(tmp_path / 'onnx.csv'),
        fitted=[in_words(x) for x in FittedModel(model).predict(photographs)],
        page=on_page(model, [row[0] for row in expected]),
    )
    for rows in ways.values():
        assert len(rows) == 16
        for row, (image, name, score, known, how) in zip(
            rows, expected, strict=True
        ):
            assert [*row[:2], row[3]] == [image, name, known]
            assert float(row[2]) == pytest.approx(float(score), abs=1e-4)
            assert row[4] == how or abs(float(row[4]) - float(how)) < 1e-4
    known = [row[3] for row in expected]
    rejects = (model / 'threshold.json').exists()
    assert known.count('no') == said.count('unknown?') == 8 * rejects
    assert known.count('') == 16 * (not rejects)
    assert {row[1] for row in expected} <= {*CLASSES}


def in_words(found):
    """Format a result of FittedModel.predict as a row."""
    assert [*found] == ['image', *COLUMNS]
    image, name, score, known, how = found.values()
    if known is None:
        return [image, name, score, '', '' if how is None else how]
    return [image, name, score, YES_NO[known], how]


def on_page(folder, images):
    """Rows shown on the page for the fitted model."""
    variants = Variants(model_in(folder))
    start = variants.start
    model, rows = variants.at(start.method, start.keep_rate), []
    for image in images:
        cells = predict_photo(model, model.prepare(image)).cells
        rows.append([image, *map(str, cells)])
    return rows


def model_in(folder):
    threshold = folder / 'threshold.json'
    reject = threshold if threshold.exists() else None
    return TokenReductionInferencer(folder / 'model.pth', reject=reject)


def test_page_has_no_threshold_for_another_keep_rate(place):
    variants = Variants(model_in(place / 'model'))
    start = variants.start
    assert variants.at(start.method, start.keep_rate).threshold is not None
    assert variants.at(start.method, start.keep_rate / 2).threshold is None
