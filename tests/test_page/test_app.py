# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""``python demo/app.py``: what it starts with, and what it says without."""

import os

import pytest
from tiny_model import write_tiny
from tiny_run import ROOT, load_tool

from mmclca.page import demo_checkpoint
from mmclca.page.photos import examples_for

APP = ROOT / 'demo/app.py'


def test_newest_checkpoint_of_the_demo(tmp_path):
    with pytest.raises(FileNotFoundError, match='make demo'):
        demo_checkpoint(tmp_path)
    folder = tmp_path / 'work_dirs/demo'
    folder.mkdir(parents=True)
    for age, name in enumerate(('best_b.pth', 'best_a.pth')):
        (folder / name).touch()
        os.utime(folder / name, (1000 - age, 1000 - age))
    (folder / 'epoch_24.pth').touch()
    assert demo_checkpoint(tmp_path) == folder / 'best_b.pth'


def test_errors_end_in_one_line(tmp_path, monkeypatch):
    pytest.importorskip('gradio', reason='the page needs gradio: extra demo')
    app = load_tool(monkeypatch, APP, tmp_path / 'none.pth')
    with pytest.raises(SystemExit, match='none.pth does not exist'):
        app['main']()


def test_missing_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr('mmclca.utils.extras.find_spec', lambda name: None)
    app = load_tool(monkeypatch, APP, tmp_path / 'none.pth')
    with pytest.raises(SystemExit, match=r'pip install "mmclca\[demo\]"'):
        app['main']()


def test_checkpoint_and_config(tmp_path, monkeypatch):
    write_tiny(tmp_path)
    words = tmp_path / 'tiny.pth', '--config', tmp_path / 'tiny.py'
    app = load_tool(monkeypatch, APP, *words, '--device', 'cpu')
    args = app['parse_args']()
    assert args.host == '127.0.0.1'
    model, name = app['trained'](args)
    assert model.classes == ['ash', 'beech', 'elm', 'oak']
    assert name == 'tiny.pth'


def test_only_a_model_that_knows_them_has_drawn_leaves(tmp_path):
    known = [f'cultivar_0{number}' for number in range(1, 9)]
    first, *others = examples_for(known, tmp_path)
    assert first.endswith('leaf_1.png') and len(others) == 7
    assert os.path.getsize(first) > 10_000
    for classes in (known[:7], ['ash', *known[1:]]):
        assert examples_for(classes, tmp_path / 'others') == []
    assert not (tmp_path / 'others').exists()
