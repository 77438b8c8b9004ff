# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A model folder may be a stranger's: nothing behind a link changes."""

import json
import shutil
import sys
from pathlib import Path

import pytest
import torch
from process_state import kept
from tiny_photographs import write_photographs, write_weights
from tiny_run import exit_code

import mmclca
from mmclca.cli.verbs import main

LINKS = ('.whole', '.draft', 'training', 'features', '.lock', 'log.txt')
NEW = 'photographs/new'


@pytest.fixture(scope='module')
def place(tmp_path_factory):
    """Folder with photos and the model that was fitted to them."""
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
            probe_only=True,
        )
    return folder


@pytest.fixture
def victim(tmp_path):
    """Files of a user, of all the names that a command might touch."""
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
    fit = [
        'fit',
        place / 'photographs',
        '--weights',
        place / 'tiny.safetensors',
    ]
    return dict(
        predict=['predict', model, place / 'new'],
        report=['report', model],
        add_class=['add-class', model, place / 'new/larch'],
        fit=[*fit, '--out', model, '--overwrite', '--probe-only'],
        export=['export', model],
        open_set=['open-set', model, '--known', place / 'photographs'],
    )


@pytest.mark.parametrize('is_trained', [False, True])
@pytest.mark.parametrize('name', LINKS)
@pytest.mark.parametrize(
    'command', ['predict', 'report', 'add_class', 'fit', 'export', 'open_set']
)
def test_nothing_behind_a_link_changes(
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
