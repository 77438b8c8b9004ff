# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""``model-index.yml`` lists all configs with their current costs."""

import importlib.util

import pytest
import yaml
from installed import needs
from mmengine.registry import DefaultScope
from tiny_run import ROOT

from mmclca.models.reduced.timm_versions import EVA_SINCE

INDEX = yaml.safe_load((ROOT / 'model-index.yml').read_text())
METAFILES = {
    path: yaml.safe_load((ROOT / path).read_text()) for path in INDEX['Import']
}
MODELS = [model for file in METAFILES.values() for model in file['Models']]


@pytest.fixture
def tool():
    """Module tools/dev/write_metafile.py, in mmpretrain's scope."""
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


@pytest.mark.slow
@pytest.mark.parametrize(
    'path',
    [
        pytest.param(
            path,
            # its configs of DINOv3
            marks=needs('timm', EVA_SINCE) if '/clca/' in path else (),
        )
        for path in METAFILES
    ],
)
def test_metafile_is_up_to_date(path, tool):
    folder = (ROOT / path).parent
    assert METAFILES[path] == tool.updated(folder), (
        f'run: python tools/dev/write_metafile.py {folder.relative_to(ROOT)}'
    )


def test_describe_keeps_manual_fields(tool):
    model = next(m for m in MODELS if 'leaf40' in m['Name'])
    known = {'Results': 'ours', 'Metadata': {'Epochs': 50, 'FLOPs': 1}}
    collection = model['In Collection']
    entry = tool.describe(ROOT / model['Config'], known, collection)
    assert entry == {
        **model,
        'Results': 'ours',
        'Metadata': {'Epochs': 50, **model['Metadata']},
    }
