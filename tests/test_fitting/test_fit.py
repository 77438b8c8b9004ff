# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The whole of it on drawn photographs, without training."""

import csv
import json
import shutil
import sys
from contextlib import redirect_stdout
from io import StringIO

import pytest
import torch
import torch.nn.functional as F
from process_state import kept
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from tiny_photographs import write_photographs, write_weights
from tiny_run import CLASSES, exit_code

import mmclca
from mmclca.apis import Probe, find_images
from mmclca.cli.verbs import main
from mmclca.fitting import FittedModel


@pytest.fixture(scope='module')
def place(tmp_path_factory):
    """Folder with photographs in train and test, and weights."""
    folder = tmp_path_factory.mktemp('fit')
    write_photographs(folder).rename(folder / 'train')
    write_photographs(folder, per_class=2, seed=1).rename(folder / 'test')
    (folder / 'photographs').mkdir()
    for name in ('train', 'test'):
        (folder / name).rename(folder / 'photographs' / name)
    torch.manual_seed(0)
    write_weights(folder)
    return folder


@pytest.fixture(scope='module')
def said(place):
    """What a fit says; it leaves ``model`` in the folder."""
    with redirect_stdout(StringIO()) as screen, kept():
        call(place)
    return screen.getvalue().splitlines()


def call(place, **options):
    """The call that all tests here make."""
    options = dict(out=place / 'model', probe_only=True) | options
    weights = place / 'tiny.safetensors'
    return mmclca.fit(place / 'photographs', weights=weights, **options)


@pytest.fixture
def copy(place, said, tmp_path):
    """A copy of the model that may be changed."""
    folder = tmp_path / 'model'
    shutil.copytree(place / 'model', folder)
    return FittedModel(folder)


def test_what_it_says_and_writes(said, place):
    assert '16 photos, 4 classes' in said[0]
    assert all(name in said[1] for name in CLASSES)
    good, sure, unknown, saved, _, following = said[-6:]
    facts = json.loads((place / 'model' / 'fit.json').read_text())
    assert facts['held_out']['n'] == 8 and facts['final'] == 'probe'
    assert f'{facts["held_out"]["accuracy"]:.1%} accuracy' in good
    assert '8 photos in val and test' in sure and 'model.pth' in saved
    threshold = facts['threshold']
    assert f' {threshold["threshold"]:.3f} ' in unknown
    assert f' {threshold["false_alarms"]:.1%} ' in unknown
    assert f'predict {place}/model NEW_PHOTOS' in following
    text = (place / 'model' / 'photographs.csv').read_text()
    rows = list(csv.DictReader(text.splitlines()))
    used = [row for row in rows if row['used'] == 'True']
    assert len(used) == 16 and len(rows) == 24
    assert {row['why_not'] for row in rows} == {'', 'held out in test'}
    evidence = load_file(place / 'model' / 'evidence.safetensors')
    for row, p in zip(used, evidence['probabilities'], strict=True):
        assert row['predicted'] == CLASSES[p.argmax()]
        p_given = float(p[CLASSES.index(row['class'])])
        assert float(row['p_given']) == pytest.approx(p_given, abs=1e-6)
    model = FittedModel(place / 'model')
    results = model.predict(place / 'photographs' / 'train')
    right = [r['pred_class'] in r['image'] for r in results if r['known']]
    assert sum(right) > 10
    assert model.accuracy == facts['held_out']['accuracy']


def test_strangers_are_told_by_the_nearest_photograph(copy, place):
    features = sorted(copy.folder.glob('features/*/*.safetensors'))
    assert len(features) == 3  # none anew for the model that is written
    probe = Probe(copy.folder / 'probe.pth', None, 'cpu')
    train, new = (
        F.normalize(probe.features(find_images([place / name]))[0])
        for name in ('photographs/train', 'photographs/test')
    )
    found = copy.predict(place / 'photographs' / 'test')
    expected = (new @ train.T).amax(1).tolist()
    scores = [row['known_score'] for row in found]
    assert scores == pytest.approx(expected, abs=1e-5)
    (again,) = copy.predict(place / 'photographs/train/ash/0.png')
    assert again['known_score'] == pytest.approx(1)


@pytest.mark.slow
def test_weights_that_are_broken(place, tmp_path):
    weights = load_file(place / 'tiny.safetensors')
    weights['blocks.0.norm1.weight'][0] = torch.inf
    save_file(weights, tmp_path / 'broken.safetensors')
    with pytest.raises(ValueError, match='NaN.*layers.0'):
        mmclca.fit(
            place / 'photographs',
            tmp_path / 'model',
            weights=tmp_path / 'broken.safetensors',
            probe_only=True,
        )
    call(place, out=tmp_path / 'model')  # it is no obstacle


def test_the_same_call_goes_on_and_others_are_refused(said, place):
    before = (place / 'model' / 'probe.pth').stat().st_mtime_ns
    call(place)
    assert (place / 'model' / 'probe.pth').stat().st_mtime_ns == before
    with pytest.raises(ValueError, match="budget None .now '9GMACs'"):
        call(place, budget='9GMACs')


@pytest.mark.parametrize(
    'options, said',
    [
        (dict(folds=1), 'folds=1 .* 2 or more'),
        (dict(runtime='ONNX'), "runtime: .*'ONNX'"),
    ],
)
def test_settings_refused_before_anything_is_written(place, options, said):
    with pytest.raises(ValueError, match=said):
        call(place, out=place / 'none', **options)
    assert not (place / 'none').exists()


def test_explained(copy, place, capsys):
    before = files_of(copy.folder)
    call(place, out=copy.folder, explain=True)
    text = capsys.readouterr().out
    (chosen,) = [x for x in text.splitlines() if x.startswith(' *')]
    assert f'{copy.facts["model"]["img_size"]} px' in chosen
    assert f'{copy.facts["probe"]["accuracy"]:.1%} at 0.0' in text
    assert 'full ViT, 224 px' in text
    assert files_of(copy.folder).keys() == before.keys()


def test_interrupted_it_keeps_what_there_is(said, place, monkeypatch):
    shutil.copytree(place / 'model', place / 'broken')
    (place / 'broken' / 'probe.pth').unlink()
    (place / 'broken' / 'report.html').unlink()

    def pressed(*_, **__):
        raise KeyboardInterrupt

    out = dict(out=place / 'broken', overwrite=True)
    with monkeypatch.context() as patch:
        patch.setattr('mmclca.fitting.probing.learning_curve', pressed)
        with pytest.raises(KeyboardInterrupt):
            call(place, **out)
    with monkeypatch.context() as patch:  # the model is counted already
        patch.setattr('mmclca.fitting.model.count_config', pressed)
        model = call(place, out=place / 'broken')
    assert model.accuracy is not None
    assert (place / 'broken' / 'report.html').exists()


def files_of(folder):
    """The files of a model, without its log."""
    found = [p for p in folder.glob('*') if p.is_file() and p.suffix != '.txt']
    return {path: path.read_bytes() for path in found}


@pytest.mark.parametrize('place_of_it', ['gone', 'empty', 'known'])
def test_a_class_that_cannot_be_added(copy, place, tmp_path, place_of_it):
    (tmp_path / 'empty').mkdir()
    known = place / 'photographs' / 'train' / 'ash'
    new = known if place_of_it == 'known' else tmp_path / place_of_it
    before = files_of(copy.folder)
    with pytest.raises((FileNotFoundError, ValueError)):
        copy.add_class(new, 'larch')
    assert files_of(copy.folder) == before


def test_a_folder_of_class_folders(copy, place):
    known = place / 'photographs' / 'train'
    with pytest.raises(ValueError, match='such as .*train/ash'):
        copy.add_class(known)


def test_features_that_are_broken_change_nothing(copy, run, tmp_path, capsys):
    part, *_ = copy.folder.glob('features/*/*.safetensors')
    with safe_open(part, 'pt') as file:
        facts, features = file.metadata(), file.get_tensor('features')
    features[3, 5] = torch.nan
    save_file(dict(features=features), part, facts)
    before = files_of(copy.folder)
    new = write_photographs(tmp_path / 'new', seed=2) / 'elm'
    assert run('add-class', copy.folder, new, '--name', 'larch') == 2
    assert files_of(copy.folder) == before
    line = capsys.readouterr().err.splitlines()[-1]
    assert f'{part} contains NaN' in line
    assert run('predict', copy.folder, new) == 0


@pytest.fixture
def run(monkeypatch):
    """Runs a command line; gives its exit code."""

    def run(*words):
        monkeypatch.setattr(sys, 'argv', ['mmclca', *map(str, words)])
        return exit_code(main)

    return run


def test_verbs_take_the_model(copy, place, tmp_path, run, capsys):
    ash = place / 'photographs' / 'train' / 'ash'
    table = tmp_path / 'results.csv'
    assert run('predict', copy.folder, ash, '--out', table) == 0
    assert {'pred_class', 'known_score', 'name_3'} <= {
        *table.read_text().splitlines()[0].split(',')
    }
    (copy.folder / 'report.html').unlink()
    assert run('report', copy.folder) == 0
    assert (copy.folder / 'report.html').exists()
    new = write_photographs(tmp_path / 'new', seed=2) / 'elm'
    before = copy.classes
    export = copy.folder / 'model.int8.onnx'
    export.touch()
    for said in ('larch: 4 photos (before 0)', 'no new photos'):
        assert run('add-class', copy.folder, new, '--name', 'larch') == 0
        text = capsys.readouterr().out
        assert said in text
        assert ('outdated model.int8.onnx' in text) is ('before 0' in said)
        assert export.exists() is ('before 0' not in said)
        export.touch()  # of the model of now
    model = FittedModel(copy.folder)
    assert model.classes == [*before, 'larch']
    assert model.facts['counts']['larch'] == 4
    names = [r['pred_class'] for r in model.predict(new) if r['known']]
    assert names.count('larch') > 1
    assert not (copy.folder / '.draft').exists()


def test_classes_inside_coarse_ones(copy, place, capsys, tmp_path):
    table = tmp_path / 'levels.csv'
    rows = [f'{name},{i % 2}' for i, name in enumerate(copy.facts['classes'])]
    table.write_text('\n'.join(['class,species', *rows]))
    call(place, out=copy.folder, coarse=table)
    said = capsys.readouterr().out
    assert 'coarse class' in said
    with pytest.raises(ValueError, match='0 and 2'):
        table.write_text(f'class,species\n{rows[0]}\n{rows[0][:-1]}2\n')
        call(place, out=copy.folder, coarse=table)
