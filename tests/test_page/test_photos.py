# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Uploaded photos, example leaves, and the command ``demo/app.py``."""

import os

import pytest
from PIL import Image
from tiny_model import write_tiny
from tiny_run import ROOT, load_tool

from mmclca import Error
from mmclca.cli.main import get_parser
from mmclca.page import read_photo
from mmclca.page.photos import list_examples

APP = ROOT / 'demo/app.py'
HEIC = b'\0\0\0\x18ftypheic' + bytes(100)


@pytest.mark.parametrize(
    'content, words',
    [
        (b'no picture', ('not an image', '200 million')),
        (HEIC, ('as JPEG',)),
        ((15, 300), ('15 x 300 pixels', '16 pixels')),
        ((16, 481), ('16 x 481 pixels', '30 times')),
    ],
)
def test_read_photo_refuses_a_file(content, words, tmp_path):
    path = tmp_path / 'leaf.png'
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        Image.new('RGB', content).save(path)
    with pytest.raises(ValueError) as error:
        read_photo(path)
    assert all(word in str(error.value) for word in words)
    Image.new('RGB', (16, 480)).save(path)
    assert read_photo(path).shape == (480, 16, 3)


def test_examples_are_drawn_for_the_synthetic_cultivars_only(tmp_path):
    known = [f'cultivar_0{number}' for number in range(1, 9)]
    first, *others = list_examples(known, tmp_path)
    assert first.endswith('leaf_1.png') and len(others) == 7
    assert os.path.getsize(first) > 10_000
    for classes in (known[:7], ['ash', *known[1:]]):
        assert list_examples(classes, tmp_path / 'others') == []
    assert not (tmp_path / 'others').exists()


@pytest.mark.parametrize(
    'is_installed, named', [(True, 'none.pth'), (False, r'mmclca\[demo\]')]
)
def test_app_exits_if_gradio_or_checkpoint_is_missing(
    is_installed, named, tmp_path, monkeypatch
):
    if is_installed:
        pytest.importorskip('gradio', reason='extra demo')
    else:
        monkeypatch.setattr('mmclca.utils.extras.find_spec', lambda name: None)
    app = load_tool(monkeypatch, APP, tmp_path / 'none.pth')
    with pytest.raises((ImportError, FileNotFoundError), match=named):
        app['main']()


def test_app_loads_checkpoint_and_config(tmp_path, monkeypatch):
    write_tiny(tmp_path)
    words = tmp_path / 'tiny.pth', '--config', tmp_path / 'tiny.py'
    app = load_tool(monkeypatch, APP, *words, '--device', 'cpu')
    args = get_parser('page').parse_args()
    assert args.host == '127.0.0.1'
    about = app['open_model'](args).about
    assert about == 'tiny.pth, 4 classes: ash, beech, elm, oak'


@pytest.mark.parametrize(
    'words, named',
    [
        (('--index', 'a'), '--index needs a model'),
        (('--cfg-options', 'a=1'), '--cfg-options needs a model'),
        (('none.pth', '--out', 'models'), '--out needs no model'),
    ],
)
def test_app_refuses_options_of_the_other_page(words, named, monkeypatch):
    app = load_tool(monkeypatch, APP, *words)
    with pytest.raises(Error, match=named):
        app['main']()


@pytest.mark.parametrize(
    'login, host, warned',
    [(None, '127.0.0.1', 0), (None, '0.0.0.0', 1), ('ann:x', '0.0.0.0', 0)],
)
def test_app_warns_if_network_needs_no_login(
    login, host, warned, tmp_path, monkeypatch, capfd
):
    server = pytest.importorskip('mmclca.page.server', reason='extra demo')
    write_tiny(tmp_path)
    served = []

    def refuse(*arguments):
        served.append(arguments)
        raise OSError('nothing is served')

    monkeypatch.setattr(server, 'serve', refuse)
    if login:
        monkeypatch.setenv('MMCLCA_PAGE_LOGIN', login)
    words = tmp_path / 'tiny.pth', '--host', host, '--device', 'cpu'
    with pytest.raises(OSError, match='nothing is served'):
        load_tool(monkeypatch, APP, *words)['main']()
    assert served[0][3] == (login and ('ann', 'x'))
    assert capfd.readouterr().err.count('Warning    everyone') == warned
