# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Fit, resume and extend a model on synthetic photos, without fine-tuning."""

import csv
import json
import re

import pytest
import torch
import torch.nn.functional as F
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from tiny_run import CLASSES

from mmclca.apis import Probe, find_images
from mmclca.benchmark import latency_table
from mmclca.fitting import FittedModel, steps


def files_of(folder):
    """Files of a model without its log."""
    found = [p for p in folder.glob('*') if p.is_file() and p.suffix != '.txt']
    return {path: path.read_bytes() for path in found}


def test_fit_prints_and_writes_the_same_facts(noted, place):
    printed = noted.printed.splitlines()
    facts = json.loads((place / 'model' / 'fit.json').read_text())
    assert '16 photos, 4 classes' in printed[0]
    start = next(i for i, x in enumerate(printed) if 'Result' in x)
    accuracy, _, measured, _, unknown, alarms, _, sure = printed[start:][:8]
    saved, following = printed[start + 8], printed[start + 10]
    assert 'at least 19 photos' in sure
    assert facts['test']['n'] == 8 and facts['final'] == 'probe'
    assert f' {facts["test"]["accuracy"]:.1%} ' in accuracy
    assert ' 8 photos' in measured and 'model.pth' in saved
    threshold = facts['threshold']
    assert f'{threshold["threshold"]:.3f}' in unknown
    assert f' {threshold["false_alarms"]:.1%} ' in alarms
    # measured when the model is complete
    assert any('Latency' in line for line in printed[start + 9 :])
    assert f'predict {place}/model ' in following
    model = FittedModel(place / 'model')
    assert model.accuracy == facts['test']['accuracy']
    results = model.predict(place / 'photographs' / 'train')
    right = [r['pred_class'] in r['image'] for r in results if r['known']]
    assert sum(right) > 10


@pytest.mark.slow
def test_model_is_complete_if_latency_is_interrupted(
    fit, place, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv('TORCH_HOME', str(tmp_path / 'torch'))
    folder = tmp_path / 'model'

    def press(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(steps, 'measure_latency', press)
        with pytest.raises(KeyboardInterrupt):
            fit(place, folder)
    assert 'Saved' in capsys.readouterr().out
    model = FittedModel(folder)
    assert model.predict(place / 'photographs/test')
    report = folder / 'report.html'
    assert 'latency was not measured' in report.read_text()
    before = files_of(folder).keys()
    monkeypatch.setattr(latency_table, 'time_models', take_two_ms)
    assert fit(place, folder).facts['cost']['ms'] == 2
    assert 'latency was not measured' not in report.read_text()
    assert files_of(folder).keys() == before
    monkeypatch.setattr(steps, 'measure_latency', press)
    facts = fit(place, tmp_path / 'another').facts  # knows the latency
    assert facts['cost']['ms'] == facts['cost']['ms_full'] == 2


def take_two_ms(models, *_):
    return dict.fromkeys(models, 2.0), ''


def test_fit_builds_one_network_and_hashes_no_photo_again(noted):
    assert noted.calls == ['load_classifier']


def test_table_has_predictions_of_training_photos(noted, place):
    text = (place / 'model' / 'photographs.csv').read_text()
    rows = list(csv.DictReader(text.splitlines()))
    used = [row for row in rows if row['used'] == 'True']
    assert len(used) == 16 and len(rows) == 24
    assert {row['why_not'] for row in rows} == {'', 'held out in test'}
    tensors = load_file(place / 'model/cv_probabilities.safetensors')
    for row, p in zip(used, tensors['probabilities'], strict=True):
        assert row['predicted'] == CLASSES[p.argmax()]
        p_given = float(p[CLASSES.index(row['class'])])
        assert float(row['p_given']) == pytest.approx(p_given, abs=1e-6)


def test_known_score_is_the_highest_similarity_to_a_training_photo(
    copy, place
):
    model = Probe(copy.folder / 'probe.pth', None, 'cpu')
    train, new = (
        F.normalize(model.features(find_images([place / name]))[0])
        for name in ('photographs/train', 'photographs/test')
    )
    found = copy.predict(place / 'photographs' / 'test')
    expected = (new @ train.T).amax(1).tolist()
    scores = [row['known_score'] for row in found]
    assert scores == pytest.approx(expected, abs=1e-5)
    (again,) = copy.predict(place / 'photographs/train/ash/0.png')
    assert again['known_score'] == pytest.approx(1)


@pytest.mark.slow
def test_fit_refuses_weights_with_infinity_and_leaves_no_trace(
    fit, place, tmp_path
):
    weights = load_file(place / 'tiny.safetensors')
    weights['blocks.0.norm1.weight'][0] = torch.inf
    broken, out = tmp_path / 'broken.safetensors', tmp_path / 'model'
    save_file(weights, broken)
    with pytest.raises(ValueError, match=r'layers\.0'):
        fit(place, out, weights=broken)
    fit(place, out)


def test_same_call_reuses_the_probe_and_another_is_refused(
    fit, copy, place, capsys
):
    path = copy.folder / 'probe.pth'
    before = path.stat().st_mtime_ns
    fit(place, copy.folder, probe_only=False)
    assert path.stat().st_mtime_ns == before
    assert 'Fine-tune  skipped' in capsys.readouterr().out
    with pytest.raises(ValueError, match='budget'):
        fit(place, copy.folder, budget='9GMACs')


REFUSED = [
    dict(folds=1),
    dict(runtime='ONNX'),
    dict(pixels='grey'),
    *(dict(budget=x) for x in ('20', 'ms', '20 s', '0ms', '-1ms', '')),
]


@pytest.mark.parametrize('options', REFUSED, ids=str)
def test_fit_refuses_an_option_and_writes_nothing(fit, place, options):
    (name,) = options
    with pytest.raises(ValueError, match=name):
        fit(place, place / 'none', **options)
    assert not (place / 'none').exists()


def test_coarse_accuracy_is_printed_or_a_bad_table_refused(
    fit, copy, place, capsys, tmp_path
):
    table = tmp_path / 'levels.csv'
    rows = [f'{name},{i % 2}' for i, name in enumerate(copy.facts['classes'])]
    table.write_text('\n'.join(['class,species', *rows]))
    fit(place, copy.folder, coarse=table)
    assert 'coarse class' in capsys.readouterr().out
    table.write_text(f'class,species\n{rows[0]}\n{rows[0][:-1]}2\n')
    with pytest.raises(ValueError, match='0 and 2'):
        fit(place, copy.folder, coarse=table)


def test_interrupted_fit_resumes_after_the_last_finished_step(
    fit, copy, place, monkeypatch
):
    (copy.folder / 'probe.pth').unlink()
    (copy.folder / 'report.html').unlink()

    def pressed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr('mmclca.fitting.probing.learning_curve', pressed)
        with pytest.raises(KeyboardInterrupt):
            fit(place, copy.folder, overwrite=True)
    with monkeypatch.context() as patch:  # the cost is in the record
        patch.setattr('mmclca.fitting.cost.count_config', pressed)
        assert fit(place, copy.folder).accuracy is not None
    assert (copy.folder / 'report.html').exists()


@pytest.mark.parametrize(
    'kind, problem',
    [
        ('gone', 'not exist'),
        ('photo.jpg', 'is a file'),
        ('empty', 'no photos'),
        ('known', 'already'),
        ('class folders', 'one class'),
    ],
)
def test_add_class_refuses_a_folder_and_changes_nothing(
    copy, place, tmp_path, kind, problem
):
    (tmp_path / 'empty').mkdir()
    (tmp_path / 'photo.jpg').touch()
    train = place / 'photographs' / 'train'
    places = {'known': train / 'ash', 'class folders': train}
    new = places.get(kind, tmp_path / kind)
    before = files_of(copy.folder)
    message = f'{re.escape(str(new))}.*{problem}'
    with pytest.raises((FileNotFoundError, ValueError), match=message):
        copy.add_class(new, None if kind == 'class folders' else 'larch')
    assert files_of(copy.folder) == before


def test_add_class_changes_nothing_if_features_are_not_finite(
    copy, place, run, capsys
):
    part, *_ = copy.folder.glob('features/*/*.safetensors')
    with safe_open(part, 'pt') as file:
        facts, features = file.metadata(), file.get_tensor('features')
    features[3, 5] = torch.nan
    del facts['crc32']
    save_file(dict(features=features), part, facts)
    before, new = files_of(copy.folder), place / 'larch'
    assert run('add-class', copy.folder, new, '--name', 'larch') == 2
    assert files_of(copy.folder) == before
    assert str(part) in capsys.readouterr().err.splitlines()[-1]
    assert run('predict', copy.folder, new) == 0


@pytest.mark.slow
@pytest.mark.first
def test_commands_take_the_model_folder(copy, place, tmp_path, run, capsys):
    table = tmp_path / 'results.csv'
    ash = place / 'photographs' / 'train' / 'ash'
    assert run('predict', copy.folder, ash, '--out', table) == 0
    columns = table.read_text().splitlines()[0].split(',')
    assert {'pred_class', 'known_score', 'name_3'} <= {*columns}
    (copy.folder / 'report.html').unlink()
    assert run('report', copy.folder) == 0
    assert (copy.folder / 'report.html').exists()
    new = place / 'larch'
    (copy.folder / 'web').mkdir()
    exports = [copy.folder / x for x in ('model.int8.onnx', 'web/model.onnx')]
    for is_new in (True, False):
        for export in exports:
            export.touch()
        capsys.readouterr()
        assert run('add-class', copy.folder, new, '--name', 'larch') == 0
        printed = capsys.readouterr().out
        assert printed.count('Removed') == 2 * is_new
        assert [export.exists() is not is_new for export in exports] == [1, 1]
    model = FittedModel(copy.folder)
    assert model.classes == [*copy.classes, 'larch']
    assert model.facts['counts']['larch'] == 4
    names = [r['pred_class'] for r in model.predict(new) if r['known']]
    assert names.count('larch') > 1
    assert not (copy.folder / '.draft').exists()
