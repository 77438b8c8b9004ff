# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
from mmengine.config import Config
from tiny_run import ROOT, run_python, write_run

from mmclca.configs import check_patches, read_config, require_settings
from mmclca.datasets.batches import build_dataset
from mmclca.errors import Error

NAME = 'clca-evit-kr25_deit-tiny-p16_1xb32-50e_leaf40-224px'


def test_read_config_accepts_paths_and_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wanted = Config.fromfile(ROOT / 'configs/clca' / f'{NAME}.py')
    for name in (NAME, NAME.upper()):
        assert read_config(name).to_dict() == wanted.to_dict()
    assert read_config(write_run(tmp_path)).model.head.num_classes == 4


@pytest.mark.slow
def test_read_config_accepts_mmpretrain_names(tmp_path):
    code = """
from mmclca.configs import read_config
print(read_config('resnet18_8xb32_in1k').model.head.num_classes)
"""
    assert run_python('-c', code, cwd=tmp_path).stdout.split()[-1] == '1000'


def test_read_config_applies_options(tmp_path):
    cfg = read_config(NAME, {'model.head.num_classes': 7})
    assert cfg.model.head.num_classes == 7
    assert read_config(NAME).model.head.num_classes == 40
    with pytest.raises(ValueError, match=r'do you mean model\?'):
        read_config(NAME, {'modle.head': 1})


def test_read_config_suggests_a_name_if_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match=f'do you mean {NAME}[?]'):
        read_config(f'configs/{NAME[:-2]}')
    with pytest.raises(FileNotFoundError, match='no config file'):
        read_config(tmp_path)
    with pytest.raises(FileNotFoundError) as error:
        read_config('x')
    assert 'do you mean' not in str(error.value)


def test_require_settings_lists_all_missing_names():
    cfg = Config(dict(a=dict(b=1), c=None, zero=0))
    require_settings(cfg, 'a', 'a.b', 'zero')
    with pytest.raises(ValueError, match='c, c.d, a.x'):
        require_settings(cfg, 'c', 'a.b', 'c.d', 'a.x')


def test_require_settings_refuses_outer_setting_if_it_is_no_group():
    cfg = Config(dict(model='resnet50', backbone=[1]))
    with pytest.raises(Error, match="model='resnet50' .* with head"):
        require_settings(cfg, 'model.head')
    with pytest.raises(Error, match='group'):
        check_patches(cfg)


@pytest.mark.parametrize(
    'backbone, term',
    [
        (dict(img_size='large'), "img_size='large'"),
        (dict(img_size=(224, 224, 3)), 'height, width'),
        (dict(img_size=224.0), 'img_size=224.0'),
        (dict(img_size=224, patch_size='16'), "patch_size='16'"),
        (dict(img_size=224, patch_size=-16), 'patch_size=-16'),
    ],
)
def test_check_patches_refuses_size_if_it_has_another_type(backbone, term):
    with pytest.raises(Error, match=term):
        check_patches(Config(dict(model=dict(backbone=backbone))))


@pytest.mark.parametrize(
    'loader, term',
    [
        (None, 'does not list images'),
        ('data', "test_dataloader='data'"),
        (dict(dataset='CustomDataset'), "dataset='CustomDataset'"),
        (dict(dataset=dict(type='CustomDataset')), 'does not list images'),
        (dict(dataset=dict(type='Leaves', data_root='a')), "type='Leaves'"),
        (dict(dataset=dict(type='CustomDataset', data_rot='a')), 'images'),
        (dict(dataset=dict(type='mmclca.UltraFGVC')), "'dataset'"),
    ],
)
def test_build_dataset_refuses_config(loader, term):
    with pytest.raises(Error, match=term):
        build_dataset(Config(dict(test_dataloader=loader)))


@pytest.mark.parametrize(
    'backbone, fix',
    [
        (dict(img_size=100), 112),
        (dict(img_size=(224, 100), patch_size=14), 112),
        (dict(img_size=(224, 224), patch_size=(14, 15)), 225),
    ],
)
def test_check_patches_suggests_a_size_if_indivisible(backbone, fix):
    with pytest.raises(ValueError, match=f'a multiple of .* such as {fix}'):
        check_patches(Config(dict(model=dict(backbone=backbone))))


def test_check_patches_accepts_unknown_sizes():
    for backbone in ({}, dict(img_size=224), dict(img_size=28, patch_size=14)):
        check_patches(Config(dict(model=dict(backbone=backbone))))
