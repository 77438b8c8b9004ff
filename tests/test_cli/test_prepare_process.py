# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import sys
from io import BytesIO, TextIOWrapper

import pytest

from mmclca import cli


@pytest.fixture
def run(monkeypatch):
    """Run a tool on a cp1252 stream; arguments and output."""

    def run(tool, *words):
        stream = TextIOWrapper(BytesIO(), encoding='cp1252')
        monkeypatch.setattr(sys, 'stdout', stream)
        monkeypatch.setattr(sys, 'argv', ['tool', *words])
        monkeypatch.setenv('HOME', '/home/ash')
        cli.run(tool)
        stream.flush()
        return sys.argv[1:], stream.buffer.getvalue()

    return run


def test_output_is_escaped_if_not_encodable(run):
    _, output = run(lambda: print('苹果 Łubin'))
    assert output == rb'\u82f9\u679c \u0141ubin' + b'\n'


def test_tilde_is_expanded_in_every_word(run):
    words = ['~/photos', '--out=~/model', 'data_root=~/a', 'a~/b', '--x=1=~']
    found, _ = run(lambda: None, *words)
    home = '/home/ash'
    assert found == [
        *(f'{home}/photos', f'--out={home}/model', f'data_root={home}/a'),
        *('a~/b', '--x=1=~'),
    ]
