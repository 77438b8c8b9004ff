# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from math import inf, isnan

import pytest
from every_config import CONFIGS
from mmengine.config import Config

from mmclca.registry import MODELS
from mmclca.utils.plain_config import check_settings, parse_plain_config


def test_what_mmengine_writes_is_read_as_it_was():
    settings = dict(
        model=dict(type='A', rates=(0.5, -1e-6), none=None, sure=True),
        odd={'with space': {1, 2}, 3: [{}]},
        note='it\'s "quoted"\nand long ' + 30 * 'word ',
        most=inf,
        least=-inf,
    )
    read = parse_plain_config(Config(settings).pretty_text)
    assert read.to_dict() == settings
    assert isnan(parse_plain_config('x = nan').x)


@pytest.mark.parametrize('path', CONFIGS[::40], ids=lambda path: path.stem)
def test_configs_of_this_package(path):
    config = Config.fromfile(path)
    read = parse_plain_config(config.pretty_text)
    assert read.to_dict() == config.to_dict()
    check_settings(dict(model=read.model, data=read.test_dataloader))


@pytest.mark.parametrize(
    'text, message',
    [
        ('a = 1\nimport os', 'line 2, import os, is no plain setting'),
        ('a = open("x")', r"line 1, open\('x'\), is no plain setting"),
        ('a = dict(b=[f()])', r'f\(\), is no plain'),
        ('a = dict(**b)', 'is no plain'),
        ('a = {**b}', 'is no plain'),
        ('a = dict([(1, 2)], 3)', 'is no plain'),
        ('a = b', 'line 1, b, is no plain'),
        ('a, b = 1, 2', 'is no plain'),
        ('a.b = 1', 'is no plain'),
        ('a = [i for i in (1, 2)]', 'is no plain'),
        ('a = 1\na =', 'line 2 is no setting'),
        ('text = 1', 'text is reserved'),
    ],
)
def test_anything_else_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        parse_plain_config(text)


def test_types_that_no_registry_knows():
    backbone = dict(type='mmclca.TokenReductionViT', norm_cfg=dict(type='LN'))
    steps = [dict(type='Resize'), dict(type='mmpretrain.PackInputs')]
    check_settings(dict(backbone=backbone, steps=steps, nothing=None))
    with pytest.raises(
        ValueError, match=r'unknown type os\.mkdir, the unknown type mmclca\.X'
    ):
        check_settings(dict(type='os.mkdir', a=[dict(type='mmclca.X')]))
    for kind in ('os.Resize', 'torch.nn.Linear', 'antigravity', 3):
        with pytest.raises(ValueError, match=f'unknown type {kind}'):
            check_settings(dict(a=[(dict(type=kind),)]))


def test_types_of_other_packages_that_are_registered(monkeypatch):
    class Foreign:
        pass

    Foreign.__module__ = 'transformers.models'
    monkeypatch.setitem(MODELS.module_dict, 'Foreign', Foreign)
    with pytest.raises(ValueError, match='unknown type Foreign'):
        check_settings(dict(model=dict(type='Foreign')))


def test_files_that_could_run_code():
    check_settings(dict(ann_file='train.txt', note='pickled'))
    for name in ('x.pkl', 'http://a/b.PICKLE', 'a.yaml', 'pkl'):
        with pytest.raises(ValueError, match=f'the file {name}'):
            check_settings(dict(data=[dict(ann_file=name)]))
