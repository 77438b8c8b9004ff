# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Model folders from elsewhere: links and paths in them are not followed."""

import json
import shutil
import sys
from pathlib import Path

import pytest
import torch
from PIL import Image
from process_state import kept
from tiny_photographs import write_photographs, write_weights
from tiny_run import exit_code

import mmclca
from mmclca.cli.verbs import main
from mmclca.fitting import FittedModel
from mmclca.fitting.record import ModelFolder

LINKS = ('.whole', '.draft', 'training', 'features', '.lock', 'log.txt')


@pytest.fixture(scope='module')
def place(tmp_path_factory):
    """Folder with photos and a model fitted to them."""
    folder = tmp_path_factory.mktemp('links')
    write_photographs(folder)
    write_photographs(folder / 'more', per_class=2, seed=1)
    (folder / 'new').mkdir()
    shutil.move(folder / 'more/photographs/ash', folder / 'new/larch')
    torch.manual_seed(0)
    with kept():
        mmclca.fit(
            folder / 'photographs',
            folder / 'model',
            weights=write_weights(folder),
            runtime='pytorch',
            probe_only=True,
        )
    return folder


@pytest.fixture
def victim(tmp_path):
    """User files with all names a command might touch."""
    folder = tmp_path / 'victim'
    (folder / 'runs').mkdir(parents=True)
    for name in ('fit.json', 'a.txt', 'epoch_1.pth', 'runs/epoch_50.pth'):
        (folder / name).write_text(name)
    (folder / 'empty.txt').touch()
    return folder


def content_of(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in Path(folder).rglob('*')
        if path.is_file()
    }


def commands(place, model):
    weights = ['--weights', place / 'tiny.safetensors']
    fit = ['fit', place / 'photographs', '--runtime', 'pytorch', *weights]
    probe = ['probe', model, '--out', model.parent / 'new.pth']
    return dict(
        predict=['predict', model, place / 'new'],
        report=['report', model],
        add_class=['add-class', model, place / 'new/larch'],
        fit=[*fit, '--out', model, '--overwrite', '--probe-only'],
        export=['export', model],
        int8=['export', model, '--int8'],
        probe=[*probe, '--images', place / 'photographs'],
        open_set=['open-set', model, '--known', place / 'photographs'],
    )


@pytest.mark.parametrize('is_trained', [False, True])
@pytest.mark.parametrize('name', LINKS)
@pytest.mark.parametrize(
    'command', ['predict', 'report', 'add_class', 'fit', 'export', 'open_set']
)
def test_command_changes_nothing_behind_a_link(
    place, victim, tmp_path, monkeypatch, capsys, command, name, is_trained
):
    model = tmp_path / 'model'
    shutil.copytree(place / 'model', model)
    if is_trained:
        facts = json.loads((model / 'fit.json').read_text())
        facts['training'] = dict(epochs=2, seconds=1.0, holdout=None)
        (model / 'fit.json').write_text(json.dumps(facts))
    shutil.rmtree(model / name, ignore_errors=True)
    (model / name).unlink(missing_ok=True)
    target = victim / 'a.txt' if name in ('.lock', 'log.txt') else victim
    (model / name).symlink_to(target)
    before, had = content_of(victim), content_of(model)
    words = ['mmclca', *map(str, commands(place, model)[command])]
    monkeypatch.setattr(sys, 'argv', words)
    code = exit_code(main)
    assert content_of(victim) == before
    if command == 'predict':
        assert content_of(model) == had
        assert code == (2 if name == '.whole' else 0)
    else:
        assert code == 2 and str(model / name) in capsys.readouterr().err


@pytest.fixture(scope='module')
def events():
    """Opened files and connected addresses."""
    found = []

    def note(event, arguments):
        if event in ('open', 'socket.connect', 'socket.getaddrinfo'):
            found.append(str(arguments))

    sys.addaudithook(note)
    return found


@pytest.mark.parametrize(
    'command',
    [
        *('predict', 'report', 'add_class', 'probe'),
        pytest.param('int8', marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize('named', ['http://127.0.0.1:9/secret', 'secret'])
def test_command_opens_no_file_or_address_named_in_the_folder(
    place, tmp_path, monkeypatch, capsys, events, command, named
):
    model = tmp_path / 'model'
    shutil.copytree(place / 'model', model)
    facts = json.loads((model / 'fit.json').read_text())
    if named == 'secret':
        named = str(tmp_path / 'secret')
        shutil.copytree(place / 'photographs', named)
    facts['weights']['source'] = f'{named}.pth'
    facts['call']['weights'] = f'{named}.pth'
    (model / 'fit.json').write_text(json.dumps(facts))
    table = (model / 'photographs.csv').read_text()
    table = table.replace(str(place / 'photographs'), named)
    (model / 'photographs.csv').write_text(table)
    events.clear()
    words = ['mmclca', *map(str, commands(place, model)[command])]
    monkeypatch.setattr(sys, 'argv', words)
    assert exit_code(main) == 0, capsys.readouterr().err
    assert not [event for event in events if 'secret' in event]
    page = (model / 'report.html').read_text()
    if command in ('report', 'add_class'):
        assert '<img' in page  # copies in the folder


@pytest.mark.parametrize('digest', ['../../a', 'A' * 64, '0' * 65])
def test_table_is_refused_if_a_digest_is_not_hexadecimal(
    place, tmp_path, digest
):
    shutil.copy(place / 'model/photographs.csv', tmp_path)
    table = tmp_path / 'photographs.csv'
    (row, *_) = ModelFolder(tmp_path).used_rows()
    table.write_text(table.read_text().replace(row['digest'], digest))
    with pytest.raises(ValueError, match='damaged'):
        ModelFolder(tmp_path).used_rows()


def test_add_class_refuses_photos_of_another_class(place, tmp_path):
    shutil.copytree(place / 'model', tmp_path / 'model')
    model = FittedModel(tmp_path / 'model')
    before = content_of(tmp_path)
    with pytest.raises(ValueError, match='already .* as ash'):
        model.add_class(place / 'photographs/../photographs/ash', 'larch')
    assert content_of(tmp_path) == before


def test_add_class_stops_if_features_are_missing(place, tmp_path):
    shutil.copytree(place / 'model', tmp_path / 'model')
    shutil.rmtree(tmp_path / 'model/features')
    with pytest.raises(ValueError, match='features .* missing'):
        FittedModel(tmp_path / 'model').add_class(place / 'new/larch')


def test_second_fit_stops_if_folder_is_in_use(place):
    model = FittedModel(place / 'model')
    lock = ModelFolder(model.folder).locked()
    with lock, pytest.raises(ValueError, match='in use'):
        model.add_class(place / 'new/larch')


def test_add_class_counts_a_photo_once_if_its_file_has_changed(
    place, tmp_path
):
    photos = tmp_path / 'photos'
    shutil.copytree(place / 'photographs', photos)
    shutil.copytree(place / 'model', tmp_path / 'model')
    table = tmp_path / 'model/photographs.csv'
    text = table.read_text().replace(str(place / 'photographs'), str(photos))
    table.write_text(text)
    changed = min((photos / 'ash').iterdir())
    Image.open(changed).rotate(90).save(changed)
    model = FittedModel(tmp_path / 'model')
    model.add_class(photos / 'ash')
    assert model.facts['counts']['ash'] == 4
