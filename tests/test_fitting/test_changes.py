# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Remove, rename and join classes, move photos, and undo."""

import csv
import json
import os
import signal
import sys
from multiprocessing import get_context

import pytest

from mmclca.checkpoints.model_folder import FILES
from mmclca.checkpoints.opening import open_checkpoint
from mmclca.fitting import FittedModel
from mmclca.fitting.confirmation import ConfirmationError
from mmclca.fitting.fit_folder import FitFolder

KILLED = 9


def files_of(folder):
    """Model files without the report, which has a date."""
    return {
        name: (folder / name).read_bytes()
        for name in FILES
        if (folder / name).is_file() and name != 'report.html'
    }


def labels_of(folder):
    with (folder / 'photographs.csv').open(encoding='utf-8-sig') as file:
        return [(x['path'], x['class']) for x in csv.DictReader(file)]


def check_consistent(model):
    """All model files name the same classes and photos."""
    classes, folder = model.classes, model.folder
    for name in ('model.pth', 'probe.pth'):
        meta = open_checkpoint(str(folder / name)).meta['dataset_meta']
        assert list(meta['classes']) == classes
    facts = json.loads((folder / 'fit.json').read_text())
    assert [*facts['counts']] == [*facts['probe']['per_class']] == classes
    used = FitFolder(folder).read_used_photos()
    assert {x.label for x in used} == {*classes}
    report = (folder / 'report.html').read_text()
    assert all(name in report for name in classes)


def test_remove_class_refits_and_undo_restores_all_bits(
    copy, place, run, capsys
):
    folder, before = copy.folder, files_of(copy.folder)
    first, second, *others = copy.classes
    (folder / 'model.onnx').touch()
    assert run('remove-class', folder, second) == 0
    printed = capsys.readouterr().out
    assert f'Removed    {second}' in printed and 'undo' in printed
    model = FittedModel(folder)
    assert model.classes == [first, *others]
    check_consistent(model)
    assert not (folder / 'model.onnx').exists()
    assert model.predict(place / 'larch')[0]['known'] is not None
    removed = files_of(folder)
    for expected in (before, removed, before):
        (folder / 'model.onnx').touch()
        assert run('undo', folder) == 0
        assert files_of(folder) == expected
        assert not (folder / 'model.onnx').exists()
    assert run('verify', folder) == 0


@pytest.mark.slow
def test_add_class_and_remove_class_give_the_same_predictions(copy, place):
    before = copy.predict(place / 'larch')
    copy.add_class(place / 'larch', force=True)
    assert FittedModel(copy.folder / 'previous').classes == copy.classes[:-1]
    copy.remove_class('larch', force=True)
    assert copy.predict(place / 'larch') == before
    check_consistent(copy)


@pytest.mark.slow
def test_rename_class_changes_names_alone(copy, place, run, capsys):
    folder, before = copy.folder, copy.predict(place / 'larch')
    old = copy.classes[0]
    weights = open_checkpoint(str(folder / 'model.pth')).weights
    threshold = (folder / 'threshold.json').read_bytes()
    assert run('rename-class', folder, old, '=Üzüm 葡萄') == 0
    model = FittedModel(folder)
    assert model.classes == ['=Üzüm 葡萄', *copy.classes[1:]]
    check_consistent(model)
    assert model.accuracy == copy.accuracy
    renamed = open_checkpoint(str(folder / 'model.pth')).weights
    assert all(renamed[x].equal(weights[x]) for x in weights)
    assert (folder / 'threshold.json').read_bytes() == threshold
    for row, previous in zip(
        model.predict(place / 'larch'), before, strict=True
    ):
        assert row['pred_score'] == previous['pred_score']
    model.add_class(place / 'larch', force=True)
    assert model.classes[0] == '=Üzüm 葡萄'
    capsys.readouterr()


@pytest.mark.slow
def test_rename_class_joins_two_classes_if_confirmed(copy, run, capsys):
    first, second, *others = copy.classes
    before = files_of(copy.folder)
    assert run('rename-class', copy.folder, first, second) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert '--yes' in line and repr(second) in line
    assert files_of(copy.folder) == before
    assert run('rename-class', copy.folder, first, second, '--yes') == 0
    model = FittedModel(copy.folder)
    assert model.classes == [second, *others]
    check_consistent(model)


@pytest.mark.slow
def test_move_photos_changes_labels_and_removes_photos(copy):
    photos = dict(labels_of(copy.folder))
    first, second, *_ = copy.classes
    moved, removed = (x for x in [*photos][:2])
    labels = {moved: second, removed: None}
    assert {photos[moved], photos[removed]} == {first}
    number = copy.facts['counts'][second]
    copy.move_photos(labels, force=True)
    photos = dict(labels_of(copy.folder))
    assert photos[moved] == second and removed not in photos
    assert copy.facts['counts'][second] == number + 1
    check_consistent(copy)


@pytest.mark.parametrize(
    'words, problem',
    [
        (['remove-class', 'none'], 'has no class'),
        (['rename-class', 'none', 'new'], 'has no class'),
        (['rename-class', '{0}', '{0}'], 'already has this name'),
        (['rename-class', '{0}', ' '], 'not a class name'),
        (['rename-class', '{0}', '{1}x'], '--yes'),
        (['undo'], 'no previous model'),
    ],
)
def test_change_of_classes_refuses_wrong_input_in_one_line(
    copy, run, capsys, words, problem
):
    before = files_of(copy.folder)
    command, *names = (word.format(*copy.classes) for word in words)
    assert run(command, copy.folder, *names) == 2
    error = capsys.readouterr().err
    assert problem in error and error.count('\n') == 1
    assert files_of(copy.folder) == before
    assert not (copy.folder / 'previous').exists()


def test_move_photos_refuses_unknown_photos_and_empty_classes(copy):
    first, second, *_ = copy.classes
    photos = dict(labels_of(copy.folder))
    all_of_first = {x: second for x in photos if photos[x] == first}
    for labels in ({'none.jpg': None}, all_of_first, {[*photos][0]: 'none'}):
        with pytest.raises(ValueError, match='class|does not list'):
            copy.move_photos(labels, force=True)
    assert FittedModel(copy.folder).classes == copy.classes


@pytest.mark.slow
def test_remove_class_refuses_the_second_last_class(copy):
    for name in copy.classes[2:]:
        copy.remove_class(name, force=True)
    with pytest.raises(ValueError, match='fewer than 2 classes'):
        copy.remove_class(copy.classes[0])
    assert len(copy.classes) == 2


def test_remove_class_asks_if_the_accuracy_would_fall(copy, monkeypatch):
    def refuse(*_):
        raise ConfirmationError('change.would_join', name='a', new='b')

    monkeypatch.setattr('mmclca.fitting.refitting.check_accuracy', refuse)
    before = files_of(copy.folder)
    with pytest.raises(ConfirmationError):
        copy.remove_class(copy.classes[0])
    assert files_of(copy.folder) == before
    assert not (copy.folder / 'previous').exists()


@pytest.mark.slow
def test_fit_with_overwrite_removes_the_previous_model(copy, place, fit):
    copy.rename_class(copy.classes[0], 'new name')
    assert (copy.folder / 'previous' / 'model.pth').is_file()
    fit(place, copy.folder, overwrite=True)
    assert not (copy.folder / 'previous').exists()


def kill_at(number, change, folder):
    """Run a change, killed at its n-th change of a file."""
    left = iter(range(number))

    def hook(event, arguments):
        is_change = event in ('os.rename', 'os.remove', 'os.mkdir', 'os.rmdir')
        is_write = event == 'open' and 'r' not in (arguments[1] or 'r')
        inside = arguments and str(arguments[0]).startswith(str(folder))
        if inside and (is_change or is_write) and next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    change(FittedModel(folder))


def rename_first(model):
    model.rename_class(model.classes[0], 'renamed')


def undo(model):
    model.undo()


@pytest.mark.slow
@pytest.mark.parametrize('change', [rename_first, undo])
def test_killed_change_leaves_a_model_that_can_be_used_and_changed(
    copy, place, change
):
    folder, context = copy.folder, get_context('fork')
    copy.rename_class(copy.classes[0], 'first')
    allowed = {
        FittedModel(x).classes[0] for x in (folder, folder / 'previous')
    }
    allowed.add('renamed')
    exit_codes = []
    for number in range(0, 60, 3):
        process = context.Process(
            target=kill_at, args=(number, change, folder)
        )
        process.start()
        process.join()
        exit_codes.append(process.exitcode)
        model = FittedModel(folder)
        assert model.classes[0] in allowed
        assert model.predict(place / 'larch/0.png')
    assert -KILLED in exit_codes
    model.undo()
    check = FittedModel(folder)
    check.rename_class(check.classes[0], 'last')
    check_consistent(check)
