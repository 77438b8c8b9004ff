# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from math import inf, isnan

import pytest
from every_config import CONFIGS
from mmengine.config import Config

from mmclca.checkpoints.plain_config import parse_plain_config


def test_pretty_text_is_parsed_exactly():
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


@pytest.mark.parametrize(
    'text, message',
    [
        ('a = 1\nimport os', 'line 2 .*import os'),
        ('a = open("x")', r"line 1 .*open\('x'\)"),
        ('a = dict(b=[f()])', r'line 1 .*f\(\)'),
        ('a = dict(**b)', 'line 1 is'),
        ('a = {**b}', 'line 1 is'),
        ('a = dict([(1, 2)], 3)', 'line 1 is'),
        ('a = b', 'line 1 .*b'),
        ("a = f'{b}'", 'line 1 is'),
        ("a = b'x'", 'line 1 is'),
        ('a = ...', 'line 1 is'),
        ("a = -'x'", 'not plain settings'),
        ('a = {[]: 1}', 'not plain settings'),
        ('a, b = 1, 2', 'line 1 is'),
        ('a.b = 1', 'line 1 is'),
        ('a = [i for i in (1, 2)]', 'line 1 is'),
        ('a = 1\na =', 'line 2 is'),
        ('text = 1', 'text is reserved'),
    ],
)
def test_text_is_refused_if_not_plain_settings(text, message):
    with pytest.raises(ValueError, match=message):
        parse_plain_config(text)
