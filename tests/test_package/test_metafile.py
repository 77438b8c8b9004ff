# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""``model-index.yml`` lists the configs that there are, as they are."""

import importlib.util

import pytest
import yaml
from mmengine.registry import DefaultScope
from tiny_run import ROOT

INDEX = yaml.safe_load((ROOT / 'model-index.yml').read_text())
METAFILES = {
    path: yaml.safe_load((ROOT / path).read_text()) for path in INDEX['Import']
}
MODELS = [model for file in METAFILES.values() for model in file['Models']]
SOME = MODELS[2::40]  # the first two are ATS, which is slow to count


@pytest.fixture
def tool():
    """tools/dev/write_metafile.py, a module in mmpretrain's scope."""
    path = ROOT / 'tools' / 'dev' / 'write_metafile.py'
    spec = importlib.util.spec_from_file_location('write_metafile', path)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        yield tool


def test_every_metafile_is_in_the_index():
    found = (ROOT / 'configs').rglob('metafile.yml')
    names = {path.relative_to(ROOT).as_posix() for path in found}
    assert names == METAFILES.keys()


def test_every_config_is_listed():
    listed = sorted(model['Config'] for model in MODELS)
    assert listed == sorted(
        config.relative_to(ROOT).as_posix()
        for path in METAFILES
        for config in (ROOT / path).parent.glob('*.py')
    )


@pytest.mark.parametrize('model', SOME, ids=[model['Name'] for model in SOME])
@pytest.mark.slow
def test_some_models_are_as_listed(model, tool):
    collection = model['In Collection']
    assert tool.describe(ROOT / model['Config'], {}, collection) == model


@pytest.mark.slow
@pytest.mark.parametrize('path', METAFILES)
def test_metafile_is_up_to_date(path, tool):
    folder = (ROOT / path).parent
    assert METAFILES[path] == tool.updated(folder), (
        f'run: python tools/dev/write_metafile.py {folder.relative_to(ROOT)}'
    )


def test_what_was_written_by_hand_is_kept(tool):
    model = next(m for m in MODELS if 'leaf40' in m['Name'])
    known = {'Results': 'ours', 'Metadata': {'Epochs': 50, 'FLOPs': 1}}
    collection = model['In Collection']
    entry = tool.describe(ROOT / model['Config'], known, collection)
    assert entry == {
        **model,
        'Results': 'ours',
        'Metadata': {'Epochs': 50, **model['Metadata']},
    }
