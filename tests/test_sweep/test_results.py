# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Reading and writing result files, and config hashes."""

import json
from dataclasses import replace
from multiprocessing import get_context

import pytest
from mmengine.config import Config
from sweep_results import result_of

from mmclca.sweep.compose import Cell, compose
from mmclca.sweep.results import config_hash, read_result, set_aside
from mmclca.utils.files import replace_text

WHOLE = json.dumps(result_of())


@pytest.mark.parametrize(
    'text',
    [
        *(WHOLE[:200], '', '[1]', '\x00' * 50, '\xff\xfe\x00{'),
        *(json.dumps(result_of(accuracy=None)), '{"cell": {}}'),
    ],
)
def test_invalid_result_is_kept_and_read_as_missing(tmp_path, text):
    path = tmp_path / 'cell.json'
    path.write_text(text, 'latin1')
    with pytest.warns(UserWarning, match='is not a result'):
        assert read_result(path) is None
    assert path.read_text('latin1') == text


def test_set_aside_overwrites_no_file(tmp_path):
    path = tmp_path / 'cell.json'
    for text in ('first', 'second'):
        path.write_text(text)
        set_aside(path)
        assert not path.exists()
    assert (tmp_path / 'cell.json.bad-1').read_text() == 'first'
    assert (tmp_path / 'cell.json.bad-2').read_text() == 'second'
    assert len(list(tmp_path.iterdir())) == 2


def write_often(path, letter):
    for _ in range(15):
        replace_text(path, 10000 * letter)


def test_readers_find_complete_files_with_several_writers(tmp_path):
    path, context = tmp_path / 'file', get_context('fork')
    writers = [
        context.Process(target=write_often, args=(path, letter))
        for letter in 'abcd'
    ]
    for writer in writers:
        writer.start()
    texts = []
    while any(writer.is_alive() for writer in writers):
        if path.exists():
            texts.append(path.read_text())
    assert all(len(t) == 10000 and len(set(t)) == 1 for t in texts)
    assert len({text[0] for text in texts}) > 1
    assert [writer.exitcode for writer in writers] == [0, 0, 0, 0]
    assert [file.name for file in tmp_path.iterdir()] == ['file']


CELL = Cell('leaf40', 'deit-tiny-p16', 'EViT', 0.25, 224, 'clca', 2)


def digest(**options):
    dotted = {name.replace('__', '.'): v for name, v in options.items()}
    return config_hash(compose(CELL, dotted))


@pytest.mark.parametrize(
    'same, options',
    [
        (False, dict(model__backbone__reducer__keep_rate=0.3)),
        (False, dict(train_dataloader__batch_size=16)),
        (False, dict(train_dataloader__dataset__ann_file='train_1shot.txt')),
        (False, dict(test_dataloader__dataset__ann_file='train.txt')),
        (False, dict(optim_wrapper__optimizer__lr=1e-3)),
        (False, dict(train_cfg__max_epochs=5)),
        (False, dict(randomness__seed=3)),
        (False, dict(load_from='other.pth')),
        (False, dict(load_from='timm://other')),
        (False, dict(auto_scale_lr__enable=True)),
        (False, dict(test_cfg__fp16=True)),
        (True, dict(train_dataloader__num_workers=0)),
        (True, dict(test_dataloader__pin_memory=True)),
        (True, dict(default_hooks__logger__interval=1)),
        (True, dict(work_dir='elsewhere')),
        (True, dict(train_dataloader__dataset__data_root='/m/leaf40_white')),
        (True, dict(train_cfg__val_interval=1)),
    ],
)
def test_config_hash_changes_only_if_results_may(same, options):
    assert (digest(**options) == digest()) == same


def test_config_hash_ignores_the_shared_data_folder():
    cfg = compose(replace(CELL, dataset='soygene'))
    before = config_hash(cfg)
    for loader in (cfg.train_dataloader, cfg.test_dataloader):
        loader.dataset.data_root = '/scratch/my sets'
    assert config_hash(cfg) == before
    cfg.train_dataloader.dataset.dataset = 'soylocal'
    assert config_hash(cfg) != before


def test_config_hash_uses_file_names_of_weights():
    one = compose(CELL, weights={'deit-tiny-p16': '/a/b/deit.pth'})
    two = compose(CELL, weights={'deit-tiny-p16': 'c/deit.pth'})
    assert config_hash(one) == config_hash(two)


def test_config_hash_is_the_same_after_writing_and_reading(tmp_path):
    cfg = compose(CELL)
    path = tmp_path / 'config.py'
    path.write_text(cfg.pretty_text)
    assert config_hash(Config.fromfile(path)) == config_hash(cfg)
    assert len(config_hash(cfg)) == 16
