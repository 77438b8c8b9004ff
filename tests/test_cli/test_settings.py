# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Parse ``--cfg-options``: valid and invalid values."""

import pytest
from mmengine.config import Config

from mmclca.cli import Parser
from mmclca.configs import merge_options, read_config


def parse(*words):
    parser = Parser()
    parser.share('--cfg-options')
    return parser.parse_args(['--cfg-options', *words]).cfg_options


def test_values_are_read_as_written():
    hook = "[dict(type='EMAHook',momentum=0.1)]"
    assert parse(f'custom_hooks={hook}', 'a.0=1,2', 'b=', 'c=a=b') == {
        'custom_hooks': [dict(type='EMAHook', momentum=0.1)],
        'a.0': [1, 2],
        'b': '',
        'c': 'a=b',
    }
    assert parse("a=[(1,2),{'b':-1}]") == dict(a=[(1, 2), dict(b=-1)])
    assert parse('a=[(1,2),(b,)]') == dict(a=[(1, 2), ('b',)])


@pytest.mark.parametrize(
    'word',
    [
        *('=3', 'a..b=1', 'a', 'a b=1', 'a=[1,2', 'a=((1,2)', 'a=f(1,2)'),
        *('a=[dict(b=1)', 'a=dict(b=c)', 'a=[dict(b=open("c"))]'),
        'a=' + '[' * 2000 + ']' * 2000,
    ],
)
def test_error_names_word_if_unparsable(word, capfd):
    with pytest.raises(SystemExit):
        parse(word)
    assert word[:40] in capfd.readouterr().err.splitlines()[-1]


def test_group_is_replaced_by_a_name_or_none_only():
    cfg = Config(dict(model=dict(head=dict(type='A'), arch=dict(depth=3))))
    for key, value in (
        ('model', 'a.py'),
        ('model.head', ''),
        ('model.head', 3),
    ):
        with pytest.raises(ValueError, match='group'):
            merge_options(cfg, {key: value})
    merge_options(cfg, {'model.arch': 'tiny', 'model.head': None})
    assert cfg.model == dict(head=None, arch='tiny')


@pytest.mark.parametrize('name', ['b.py', 'c.json'])
def test_config_may_begin_with_a_mark(tmp_path, name):
    (tmp_path / 'a.py').write_text('\ufeffa = 1\r\n', 'utf-8')
    (tmp_path / 'b.py').write_text("\ufeff_base_ = 'a.py'\nb = 2\n", 'utf-8')
    (tmp_path / 'c.json').write_text('\ufeff{"_base_": "b.py"}', 'utf-8')
    assert dict(read_config(tmp_path / name)) == dict(a=1, b=2)
