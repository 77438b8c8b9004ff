# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Model folders from elsewhere: links and paths in them are not followed."""

import json
import shutil
import sys
from pathlib import Path

import pytest
from installed import NEEDS_COMPILER
from PIL import Image

from mmclca.benchmark import quantized
from mmclca.fitting.fit_folder import FitFolder

LINKS = (
    *('.whole', '.draft', 'training', 'features', 'web', '.lock', 'log.txt'),
    'previous',
)


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


ADDRESS = 'http://127.0.0.1:9/secret'


def commands(place, model):
    """Return command lines by name; they fit to train photos only."""
    train = place / 'photographs/train'
    weights = ['--weights', place / 'tiny.safetensors']
    fit = ['fit', train, '--runtime', 'pytorch', *weights, '--probe-only']
    probe = ['probe', model, '--out', model.parent / 'new.pth']
    return dict(
        predict=['predict', model, place / 'larch'],
        report=['report', model],
        add_class=['add-class', model, place / 'larch'],
        fit=[*fit, '--out', model, '--overwrite'],
        export=['export', model],
        int8=['export', model, '--int8'],
        probe=[*probe, '--images', train],
        open_set=['open-set', model, '--known', train],
    )


@pytest.mark.parametrize('name', LINKS)
@pytest.mark.parametrize(
    'command', ['predict', 'report', 'add_class', 'fit', 'export', 'open_set']
)
def test_command_changes_nothing_behind_a_link(
    place, copy, victim, run, capsys, command, name
):
    model = copy.folder
    facts = json.loads((model / 'fit.json').read_text())
    facts['training'] = dict(epochs=2, seconds=1.0, finetune_val=None)
    (model / 'fit.json').write_text(json.dumps(facts))
    shutil.rmtree(model / name, ignore_errors=True)
    (model / name).unlink(missing_ok=True)
    target = victim / 'a.txt' if name in ('.lock', 'log.txt') else victim
    (model / name).symlink_to(target)
    before, had = content_of(victim), content_of(model)
    code = run(*commands(place, model)[command])
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


def name_others(model, place, named):
    """Name others of its weights and photos in a model folder."""
    facts = json.loads((model / 'fit.json').read_text())
    facts['weights']['source'] = f'{named[0]}.pth'
    facts['call']['weights'] = f'{named[1]}.pth'
    (model / 'fit.json').write_text(json.dumps(facts))
    header, *rows = (model / 'photographs.csv').read_text().splitlines()
    known = str(place / 'photographs')
    rows = [x.replace(known, str(named[i % 2])) for i, x in enumerate(rows)]
    (model / 'photographs.csv').write_text('\n'.join([header, *rows]))


@pytest.mark.parametrize(
    'command', ['predict', 'report', 'add_class', 'probe']
)
def test_command_opens_no_file_or_address_named_in_the_folder(
    place, copy, tmp_path, capsys, events, run, command
):
    model = copy.folder
    shutil.copytree(place / 'photographs', tmp_path / 'secret')
    name_others(model, place, (ADDRESS, tmp_path / 'secret'))
    events.clear()
    assert run(*commands(place, model)[command]) == 0, capsys.readouterr().err
    assert not [event for event in events if 'secret' in event]
    if command in ('report', 'add_class'):
        assert '<img' in (model / 'report.html').read_text()  # stored copies


@NEEDS_COMPILER
@pytest.mark.slow
def test_int8_comparison_decodes_no_other_photo_and_opens_no_address(
    place, copy, tmp_path, capsys, events, run, monkeypatch
):
    shutil.copytree(place / 'photographs', tmp_path / 'secret')
    for path in (tmp_path / 'secret').rglob('*.png'):
        path.write_bytes(path.read_bytes() + b' ')  # only its digest is read
    name_others(copy.folder, place, (ADDRESS, tmp_path / 'secret'))
    events.clear()
    monkeypatch.setattr(quantized, 'extract_outputs', None)  # not reached
    assert run(*commands(place, copy.folder)['int8']) == 0
    assert '8-bit not measured' in capsys.readouterr().out
    assert not [event for event in events if ADDRESS in event]
    assert not [event for event in events if 'secret.pth' in event]


@pytest.mark.parametrize('digest', ['../../a', 'A' * 64, '0' * 65])
def test_table_is_refused_if_a_digest_is_not_hexadecimal(copy, digest):
    files = FitFolder(copy.folder)
    (row, *_), table = files.read_used_photos(), files.table
    table.write_text(table.read_text().replace(row.sha256, digest))
    with pytest.raises(ValueError, match='damaged'):
        files.read_used_photos()


def test_add_class_refuses_photos_of_another_class(place, copy):
    before, photos = content_of(copy.folder), place / 'photographs/train'
    with pytest.raises(ValueError, match='already .* as ash'):
        copy.add_class(photos / '../train/ash', 'larch')
    assert content_of(copy.folder) == before


def test_add_class_stops_if_features_are_missing_or_folder_is_in_use(
    place, copy
):
    shutil.rmtree(copy.folder / 'features')
    with pytest.raises(ValueError, match='features .* missing'):
        copy.add_class(place / 'larch')
    lock = FitFolder(copy.folder).locked()
    with lock, pytest.raises(ValueError, match='in use'):
        copy.add_class(place / 'larch')


@pytest.mark.slow
def test_add_class_refuses_changed_photos_if_features_are_missing(place, copy):
    photos, table = copy.folder / 'photos', copy.folder / 'photographs.csv'
    shutil.copytree(place / 'photographs', photos)
    text = table.read_text().replace(str(place / 'photographs'), str(photos))
    table.write_text(text)
    shutil.rmtree(copy.folder / 'features')
    changed = min((photos / 'train/ash').iterdir())
    content = changed.read_bytes()
    Image.open(changed).rotate(90).save(changed)
    with pytest.raises(ValueError, match=f'1 photos .*{changed.name}'):
        copy.add_class(place / 'larch')
    assert not [*copy.folder.glob('features/*/*')]
    changed.write_bytes(content)
    copy.add_class(place / 'larch')
    assert copy.facts['counts']['larch'] == 4


def test_add_class_counts_a_photo_once_if_its_file_has_changed(
    place, copy, tmp_path
):
    photos = tmp_path / 'photos'
    shutil.copytree(place / 'photographs', photos)
    table = copy.folder / 'photographs.csv'
    text = table.read_text().replace(str(place / 'photographs'), str(photos))
    table.write_text(text)
    changed = min((photos / 'train/ash').iterdir())
    Image.open(changed).rotate(90).save(changed)
    copy.add_class(photos / 'train/ash')
    assert copy.facts['counts']['ash'] == 4
