# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""mmpretrain and mim find configs by name."""

import shutil

import pytest
import torch
from mmpretrain import get_model, list_models
from mmpretrain.apis.model import ModelHub
from tiny_run import ROOT

import mmclca.models  # noqa: F401, for what it registers
from mmclca import model_index

CONFIGS = {
    path.stem: path.relative_to(ROOT)
    for metafile in ROOT.glob('configs/*/metafile.yml')
    for path in metafile.parent.glob('*.py')
}
CLCA = sorted(name for name in CONFIGS if 'clca' in name)


def test_list_models_contains_all_configs():
    listed = set(list_models())
    assert listed.issuperset(CONFIGS)
    assert len(listed) > len(CONFIGS)  # includes mmpretrain's own models
    assert list_models('*clca*') == CLCA
    assert len(list_models('clca-evit-kr10_*_soyageing-r?-448px')) == 45


@pytest.mark.parametrize(
    'name, num_classes',
    [
        ('clca-evit-kr10_vit-base-p16_1xb32-50e_pets-448px', 37),
        ('deit-tiny-distilled-p16_4xb256-300e_imagenet-224px', 1000),
    ],
)
def test_get_model_accepts_config_names(name, num_classes):
    with torch.device('meta'):
        model = get_model(name)
    assert model.head.num_classes == num_classes
    assert model._metainfo.name == name


@pytest.fixture
def known(monkeypatch):
    """Models registered in mmpretrain's hub."""
    known = {}
    monkeypatch.setattr(ModelHub, '_models_dict', known)
    return known


def test_wheel_configs_are_registered(tmp_path, monkeypatch, known):
    package = tmp_path / 'mmclca'
    shutil.copytree(ROOT / 'configs', package / '.mim' / 'configs')
    shutil.copy2(ROOT / 'model-index.yml', package / '.mim')
    monkeypatch.setattr(model_index, 'PACKAGE', package)
    model_index.register_models()
    assert known.keys() == CONFIGS.keys()
    for name, model in known.items():
        path = package / '.mim' / CONFIGS[name]
        assert model.config == str(path)
        assert path.is_file()


def test_no_models_are_registered_without_configs(
    tmp_path, monkeypatch, known
):
    monkeypatch.setattr(model_index, 'PACKAGE', tmp_path / 'mmclca')
    model_index.register_models()
    assert not known
