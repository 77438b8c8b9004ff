# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Names of earlier checkpoints and model folders are converted."""

import json
from inspect import signature

import pytest

from mmclca.checkpoints import earlier_versions
from mmclca.checkpoints.earlier_versions import (
    convert_config,
    convert_record,
    restore_config,
)
from mmclca.checkpoints.gate.stored_config import read_stored_config
from mmclca.checkpoints.model_folder import FILES, ModelFolder, prepare_writing
from mmclca.checkpoints.opening import open_checkpoint
from mmclca.fitting.fit_folder import FitFolder
from mmclca.fitting.record import FitRecord
from mmclca.registry import DATA_SAMPLERS, HOOKS, MODELS, TRANSFORMS

# one entry per row of the tables: settings or records as they were written,
# and with the present names
CONFIGS: list[tuple[dict, dict]] = [
    (
        dict(type='mmclca.AtLeastSampler', min_samples=256),
        dict(type='mmclca.MinLengthSampler', min_samples=256),
    ),
    (dict(type='mmclca.FiniteHook'), dict(type='mmclca.CheckInvalidLossHook')),
    (
        dict(type='mmclca.KeepRateWarmUpHook', epochs=2),
        dict(type='mmclca.KeepRateScheduleHook', epochs=2),
    ),
    (
        dict(type='mmclca.ResMLP', communication='conv'),
        dict(type='mmclca.ResMLP', token_mixer='conv'),
    ),
    (
        dict(type='mmclca.ResMLP', ending='class_mlp'),
        dict(type='mmclca.ResMLP', pooling='class_mlp'),
    ),
    (
        dict(type='mmclca.ToMe', fuse='mlerp'),
        dict(type='mmclca.ToMe', merge='mlerp'),
    ),
    (
        dict(type='mmclca.DistilledHead', fusion='cls'),
        dict(type='mmclca.DistilledHead', output='cls'),
    ),
    (
        dict(type='mmclca.TokenReductionRetriever', stage='backbone'),
        dict(type='mmclca.TokenReductionRetriever', feature='backbone'),
    ),
    (dict(type='mmclca.LoadPhotograph'), dict(type='mmclca.LoadPhoto')),
]
RECORDS: list[tuple[dict, dict]] = [
    (
        dict(
            photographs='0a1b',
            call=dict(photographs='/oaks', folds=5),
            learning_curve=[dict(photographs=1, accuracy=0.5)],
        ),
        dict(
            photos='0a1b',
            call=dict(photos='/oaks', folds=5),
            learning_curve=[dict(photos=1, accuracy=0.5)],
        ),
    ),
    (
        dict(problems=['Skipped: 1 duplicate']),
        dict(problems=[dict(kind='line', reason='Skipped: 1 duplicate')]),
    ),
    (dict(held_out=dict(n=8)), dict(test=dict(n=8))),
    (
        dict(cost=dict(busy='; machine busy')),
        dict(cost=dict(busy='machine busy')),
    ),
    (
        dict(probe=dict(strength=0.3, share=0.5)),
        dict(probe=dict(alpha=0.3, late_cls_weight=0.5)),
    ),
    (dict(series=dict(ash=2)), dict(near_duplicate_counts=dict(ash=2))),
    (
        dict(training=dict(epochs=20, holdout=dict(n=40))),
        dict(training=dict(epochs=20, finetune_val=dict(n=40))),
    ),
]


@pytest.mark.parametrize('old, new', CONFIGS, ids=lambda x: x.get('type'))
def test_earlier_settings_get_present_names(old, new):
    assert convert_config(dict(model=old)) == dict(model=new)


@pytest.mark.parametrize('old, new', CONFIGS, ids=lambda x: x.get('type'))
def test_first_names_are_restored_for_digests(old, new):
    assert restore_config(dict(model=new)) == dict(model=old)
    assert restore_config(dict(model=[dict(a=1)])) == dict(model=[dict(a=1)])


@pytest.mark.parametrize('old, new', RECORDS, ids=lambda x: next(iter(x)))
def test_earlier_record_gets_present_keys(old, new):
    assert convert_record(old) == new


def find_class(name):
    for registry in (DATA_SAMPLERS, HOOKS, MODELS, TRANSFORMS):
        registry.import_from_location()
        if name in registry.module_dict:
            return registry.module_dict[name]
    return None


def test_new_types_and_options_exist():
    for old, new in earlier_versions.TYPES.items():
        assert find_class(new) is not None and find_class(old) is None
    for (name, old), new in earlier_versions.OPTIONS.items():
        options = set()
        for base in find_class(name).__mro__:
            options |= {*signature(base.__init__).parameters}
        assert new in options and old not in options, (name, old)


@pytest.fixture
def renamed(monkeypatch):
    """Rename a type, its option and two keys of a record."""
    monkeypatch.setitem(earlier_versions.TYPES, 'OldHead', 'LinearClsHead')
    option = 'LinearClsHead', 'number'
    monkeypatch.setitem(earlier_versions.OPTIONS, option, 'num_classes')
    monkeypatch.setitem(earlier_versions.RECORD_KEYS, 'label', 'name')
    monkeypatch.setitem(
        earlier_versions.RECORD_KEYS, 'considered.share', 'weight'
    )


def test_settings_are_converted_at_all_depths(renamed):
    old = dict(type='mmpretrain.OldHead', number=3)
    new = dict(type='mmpretrain.LinearClsHead', num_classes=3)
    config = dict(model=dict(heads=[old, (old,)], number=1), lr=0.1)
    assert convert_config(config) == dict(
        model=dict(heads=[new, (new,)], number=1), lr=0.1
    )
    assert config['model']['heads'][0] is old and old['number'] == 3


def test_record_is_converted_at_all_depths(renamed):
    old = dict(label='a', considered=[dict(share=1, label='b')], share=2)
    assert convert_record(old) == dict(
        name='a', considered=[dict(weight=1, label='b')], share=2
    )


def test_stored_config_is_converted_when_read(renamed, tiny, change):

    text = (
        "model = dict(type='ImageClassifier', backbone=dict(type='LeNet5', "
        "num_classes=-1), head=dict(type='OldHead', number=4, in_channels=84))"
    )
    head = read_stored_config(open_checkpoint(change(text))).model.head
    assert head == dict(type='LinearClsHead', num_classes=4, in_channels=84)


def test_record_of_folder_is_converted_when_read(renamed, tmp_path):
    FitFolder(tmp_path).write(FitRecord(name='oaks'))
    file = tmp_path / 'fit.json'
    written = json.loads(file.read_text())
    written['label'] = written.pop('name')
    del written['crc32']
    file.write_text(json.dumps(written))
    assert FitFolder(tmp_path).read() == FitRecord(name='oaks')


def test_files_of_earlier_folder_get_present_names(tmp_path):
    old = {new: old for old, new in earlier_versions.FILE_NAMES.items()}
    for name in FILES:
        (tmp_path / old.get(name, name)).write_text(name)
    assert (
        old.keys() <= {*FILES} and ModelFolder(tmp_path).list_missing() == []
    )
    prepare_writing(tmp_path)
    assert {x.name: x.read_text() for x in tmp_path.iterdir()} == {
        name: name for name in FILES
    }


def test_files_keep_their_names_in_other_folders(tmp_path):
    for name in earlier_versions.FILE_NAMES:
        (tmp_path / name).touch()
    prepare_writing(tmp_path)
    names = {x.name for x in tmp_path.iterdir()}
    assert names == set(earlier_versions.FILE_NAMES)
