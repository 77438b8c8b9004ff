# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Models on the disk: names, added photos, deletion."""

import json
import shutil
from types import SimpleNamespace
from zipfile import ZipFile

import pytest
from tiny_photos import write_photos
from tiny_run import CLASSES as NAMES

pytest.importorskip('gradio', reason='the page needs gradio: extra demo')

from mmclca.page.form import FitForm
from mmclca.page.growth import Growth
from mmclca.page.identify import IdentifyTab
from mmclca.page.models import KeptModel, ModelStore, read_classes

CLASSES = {*NAMES}


@pytest.fixture
def store(tmp_path):
    """Store with photos for two models."""
    for name in ('oaks', 'elms'):
        folder = tmp_path / 'models' / name
        write_photos(folder, per_class=1).rename(folder / 'photos')
    return ModelStore(tmp_path / 'models')


def test_renamed_model_keeps_its_photos_and_frees_its_name(store):
    model = store.find('oaks')
    store.rename(model, 'Üzüm 葡萄')
    assert store.names() == ['elms', 'Üzüm 葡萄']
    assert store.find('Üzüm 葡萄').photos == model.photos
    new = store.find('oaks')
    assert not new.has_photos and new.folder != model.folder
    for name in ('elms', 'Üzüm 葡萄', 'oaks'):
        with pytest.raises(ValueError, match='already is a model'):
            store.rename(store.find('elms'), name)
    with pytest.raises(ValueError, match='not allowed'):
        store.rename(store.find('elms'), '../x')


def test_deleted_model_leaves_no_file(store, tmp_path):
    store.delete(store.find('oaks'))
    assert store.names() == ['elms']
    assert [x.name for x in (tmp_path / 'models').iterdir()] == ['elms']


def test_model_in_use_is_not_deleted(store):
    model = store.find('oaks')
    with model.files.locked(), pytest.raises(ValueError, match='in use'):
        store.delete(model)
    assert 'oaks' in store.names()


def test_folders_name_classes_unless_one_is_typed(tmp_path):
    folder = write_photos(tmp_path, per_class=1)
    photos = {str(x): x.parent.name for x in folder.rglob('*.png')}
    assert read_classes(folder, '') == photos
    assert read_classes(folder, 'yew') == dict.fromkeys(photos, 'yew')


def test_photo_without_a_class_is_refused(tmp_path):
    folder = write_photos(tmp_path, per_class=1)
    shutil.copy(next(folder.glob('ash/*')), folder / 'loose.png')
    with pytest.raises(ValueError, match='loose.png is in no folder'):
        read_classes(folder, '')
    (tmp_path / 'empty').mkdir()
    with pytest.raises(ValueError, match='no photo'):
        read_classes(tmp_path / 'empty', 'ash')


def test_photos_of_a_refused_change_are_removed(store, tmp_path):
    model = store.find('oaks')
    files = [*write_photos(tmp_path / 'new', per_class=1).rglob('*.*')]
    names = [f'new/{x.parent.name}/{x.name}' for x in files]
    first, second = (
        model.add_photos(files, names, label) for label in ('', 'yew')
    )
    assert {*second.values()} == {'yew'}
    kept = [str(x) for x in model.added.rglob('*.*')]
    assert sorted(kept) == sorted(second) and {*first.values()} == CLASSES


@pytest.fixture
def app_archive(tmp_path):
    """Return a function to write an archive of the app for some classes."""
    folders = {'ash _1_': 'ash "1"'}

    def write(*classes):
        facts = dict(name='Trees', model='', classes=classes, folders=folders)
        with ZipFile(tmp_path / 'seen.zip', 'w') as archive:
            archive.writestr('app.json', json.dumps(facts))
            archive.writestr('ash _1_/1.jpg', b'photo')
        return tmp_path / 'seen.zip'

    return write


def test_photos_of_the_phone_app_have_its_classes(
    store, app_archive, monkeypatch
):
    record = SimpleNamespace(photos=SimpleNamespace(classes=NAMES))
    monkeypatch.setattr(KeptModel, 'read_record', lambda _: record)
    model = store.find('oaks')
    with pytest.raises(ValueError, match=r'seen .*of another model'):
        model.add_photos([app_archive('maize', 'rice')], [], '')
    labels = model.add_photos([app_archive(*NAMES)], [], '')
    assert [*labels.values()] == ['ash "1"']
    assert [str(x) for x in model.added.rglob('*.jpg')] == [*labels]


@pytest.fixture
def growth(tmp_path, store, problems):
    (tmp_path / 'uploads').mkdir()
    tab = IdentifyTab(tmp_path / 'uploads')
    return Growth(FitForm(tab, store.folder, {}))


@pytest.mark.parametrize(
    'change, words',
    [
        (lambda x: x.remove_class('ash', 'oaks'), 'no model yet'),
        (lambda x: x.remove_class(None, 'oaks'), 'choose a class'),
        (lambda x: x.rename_class('ash', ' ', 'oaks'), 'new name'),
        (lambda x: x.correct({}, 'oaks'), 'correct a photo'),
        (lambda x: x.undo('gone'), 'choose a model'),
        (lambda x: x.rename_model('elms', 'oaks'), 'already is'),
        (lambda x: x.delete_model('gone'), 'choose a model'),
        (
            lambda x: x.add_photos(
                [dict(path='/etc/passwd')], '[]', None, 'oaks'
            ),
            'not uploaded',
        ),
    ],
)
def test_wrong_changes_are_refused_in_one_line(
    growth, store, problems, change, words
):
    change(growth)
    assert len(problems) == 1 and words in problems[0]
    assert store.names() == ['elms', 'oaks']


def test_form_shows_no_model_after_it_is_deleted(growth, store, problems):
    view = growth.delete_model('oaks')
    assert not problems and view.name is None and view.names == ['elms']
    view = growth.rename_model('yews', 'elms')
    assert not problems and (view.name, view.names) == ('yews', ['yews'])
