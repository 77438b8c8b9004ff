# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Predictions with a guarantee, and among some classes, by a fitted model."""

import csv
import json
from types import SimpleNamespace

import pytest
import report_folder
import torch
from safetensors.torch import load_file, save_file

from mmclca.apis import TokenReductionInferencer
from mmclca.apis.probe import LabeledFeatures, out_of_fold
from mmclca.deployment import pt2
from mmclca.evaluation.conformal import SetSizes
from mmclca.export_formats import FORMATS
from mmclca.fitting import FittedModel
from mmclca.fitting.calibration import calibrate
from mmclca.fitting.exporting import export_model
from mmclca.fitting.guarantee import Guarantee
from mmclca.fitting.report import write_report
from mmclca.languages import use_language


@pytest.fixture
def table(copy, tmp_path):
    """Table with one coarse class for all but the first class."""
    path = tmp_path / 'levels.csv'
    first, *others = copy.classes
    rows = [f'{first},other', *(f'{name},tree' for name in others)]
    path.write_text('\n'.join(['class,kind', *rows]))
    return path


@pytest.mark.slow
def test_predict_writes_sets_with_their_coarse_class(
    fit, copy, place, run, table, tmp_path, capsys
):
    fit(place, copy.folder, coarse=table)
    fit(place, copy.folder)  # keeps the coarse classes
    new, out = place / 'photographs/test', tmp_path / 'results.csv'
    capsys.readouterr()
    assert not run('predict', copy.folder, new, '--sure', 90, '--out', out)
    printed = capsys.readouterr()
    assert 'With 90% guarantee' in printed.err
    rows = [*csv.DictReader(out.open())]
    for row, line in zip(rows, printed.out.splitlines(), strict=True):
        members = row['sure_set'].split(' | ')
        assert members[0] == row['pred_class']
        answer = row['sure_set']
        if len(members) > 1 and copy.classes[0] not in members:
            answer = 'tree'
        assert row['sure_answer'] == answer
        assert f'90%: {answer}  ' in line
    assert not run(
        *('predict', copy.folder, new, '--sure', 50),
        *('--out', tmp_path / 'results.json'),
    )
    entries = json.loads((tmp_path / 'results.json').read_text())
    for row, entry in zip(rows, entries, strict=True):
        assert {*entry['sure_set']} <= {*row['sure_set'].split(' | ')}


def test_predict_is_restricted_to_the_listed_classes(
    copy, place, run, tmp_path
):
    names = copy.classes[1:3]
    here, out = tmp_path / 'here.txt', tmp_path / 'results.csv'
    here.write_text('\n'.join(names))
    new = place / 'photographs/test'
    assert not run('predict', copy.folder, new, '--among', here, '--out', out)
    rows = [*csv.DictReader(out.open())]
    full = copy.predict(new)
    for row, result in zip(rows, full, strict=True):
        assert {row['name_1'], row['name_2']} == {*names}
        assert row['name_3'] == row['label_3'] == row['score_3'] == ''
        total = float(row['score_1']) + float(row['score_2'])
        assert total == pytest.approx(1, abs=1e-5)
        assert float(row['known_score']) == pytest.approx(
            result['known_score'], abs=1e-5
        )
    restricted = copy.predict(new, among=here, sure=80)
    assert [x['pred_class'] for x in restricted] == [
        row['pred_class'] for row in rows
    ]
    assert all({*x['sure_set']} <= {*names} for x in restricted)


@pytest.mark.parametrize(
    ('words', 'problem'),
    [
        (('--sure', 95), 'at least 19 photos are needed, found 16'),
        (('--sure', 40), 'expected at least 50'),
        (('--among', 'gone.txt'), 'gone.txt does not exist'),
    ],
)
def test_predict_refuses_impossible_answers(
    copy, place, run, capsys, words, problem
):
    assert run('predict', copy.folder, place / 'larch', *words) == 2
    assert problem in capsys.readouterr().err.splitlines()[-1]


def test_predict_refuses_sets_of_an_earlier_model_folder(copy, place):
    path = copy.folder / 'cv_probabilities.safetensors'
    tensors = load_file(path)
    del tensors['groups']
    save_file(tensors, path)
    with pytest.raises(ValueError, match='earlier version'):
        FittedModel(copy.folder).predict(place / 'larch', sure=90)


def test_guarantee_describes_one_two_and_coarse_classes():
    sizes = SetSizes(
        mean=1.7, one_class=0.62, two_classes=0.2, coarse_class=0.1
    )
    guarantee = Guarantee(95, 'photo', 60, sizes)
    assert guarantee.describe().lines == (
        'with 95% guarantee: one class for 62% of photos, two for 20%',
    )
    coarse = Guarantee(95, 'photo', 60, sizes, '', dict(oak='tree'))
    assert 'one coarse class for 10%' in coarse.describe().lines[0]


def test_report_states_the_guarantee(tmp_path):
    sizes = dict(mean=1.7, one_class=0.62, two_classes=0.2, coarse_class=0.1)
    report_folder.write_folder(
        tmp_path,
        guarantee=dict(level=95, unit='photo', number=60, sizes=sizes),
    )
    page = write_report(tmp_path).read_text()
    assert 'one class for 62% of photos, two for 20%.' in page


def test_exported_model_stores_its_calibration(copy, monkeypatch, tmp_path):
    sources = []

    def write(source, out):
        sources.append(source)

    monkeypatch.setattr(pt2, 'write', write)

    def read_stored():
        inferencer = TokenReductionInferencer(copy.folder, device='cpu')
        out = tmp_path / 'model.pt2'
        export_model(inferencer, str(copy.folder), FORMATS['pt2'], out, {})
        return json.loads(sources.pop().metadata['sure'])

    stored = read_stored()
    tensors = load_file(copy.folder / 'cv_probabilities.safetensors')
    assert stored['labels'] == tensors['labels'].tolist()
    assert (stored['unit'], stored['coarse_classes']) == ('photo', {})
    (copy.folder / 'cv_probabilities.safetensors').unlink()
    assert read_stored() is None


@pytest.mark.parametrize(
    ('across_days', 'groups', 'unit'),
    [(False, '', 'photo'), (False, 'plant', 'group'), (True, '', 'day')],
)
def test_calibration_has_the_groups_of_the_cross_validation(
    across_days, groups, unit
):
    plan = SimpleNamespace(
        tests_other_days=across_days, options=SimpleNamespace(groups=groups)
    )
    labels = [0, 1] * 4
    names = [*'aabbccdd'] if unit != 'photo' else None
    data = LabeledFeatures(torch.eye(8), labels, 2, names)
    calibration = calibrate(plan, out_of_fold(data))
    assert calibration.unit == unit
    assert calibration.independent == (8 if names is None else 4)
    assert calibration.labels.tolist() == labels


def test_missing_guarantee_is_explained_in_each_language():
    few, single = Guarantee(95, 'day', 18), Guarantee(95, 'group', 30)
    (line,) = few.describe().lines
    assert 'at least 19 days are needed, found 18' in line
    assert 'a second group' in single.describe().lines[0]
    with use_language('zh'):
        assert '19 个日期' in few.describe().lines[0]
        assert '组' in single.describe().lines[0]
