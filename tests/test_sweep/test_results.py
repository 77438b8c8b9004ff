# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Reading and writing result files, and config hashes."""

import json
from dataclasses import replace
from multiprocessing import get_context

import pytest
from mmengine.config import Config
from sweep_results import KEY, compose, result_of

from mmclca.sweep.results import config_hash, read_result, set_aside
from mmclca.utils.files import replace_file, replace_text

WHOLE = json.dumps(result_of())


@pytest.mark.parametrize(
    'text',
    [
        *(WHOLE[:200], '', '[1]', '\x00' * 50, '\xff\xfe\x00{'),
        *(json.dumps(result_of(accuracy=None)), '{"run": {}}'),
    ],
)
def test_invalid_result_is_kept_and_read_as_missing(tmp_path, text):
    path = tmp_path / 'run.json'
    path.write_text(text, 'latin1')
    with pytest.warns(UserWarning, match='is not a result'):
        assert read_result(path) is None
    assert path.read_text('latin1') == text


def test_set_aside_overwrites_no_file(tmp_path):
    path = tmp_path / 'run.json'
    for text in ('first', 'second'):
        path.write_text(text)
        set_aside(path)
    found = {file.name: file.read_text() for file in tmp_path.iterdir()}
    assert found == {'run.json.bad-1': 'first', 'run.json.bad-2': 'second'}


def write_often(path, letter):
    for _ in range(5):
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


def test_old_file_is_kept_if_writing_fails(tmp_path):
    path = tmp_path / 'runs.csv'
    path.write_text('old')

    def fail(partial):
        partial.write_text('ne')
        raise OSError('disk full')

    with pytest.raises(OSError, match='disk full'):
        replace_file(path, fail)
    assert path.read_text() == 'old'
    assert list(tmp_path.iterdir()) == [path]


CHANGED = {
    'model.backbone.reducer.keep_rate': 0.3,
    'train_dataloader.batch_size': 16,
    'train_dataloader.dataset.ann_file': 'train_1shot.txt',
    'test_dataloader.dataset.ann_file': 'train.txt',
    'optim_wrapper.optimizer.lr': 1e-3,
    'train_cfg.max_epochs': 5,
    'randomness.seed': 3,
    'load_from': 'timm://other',
    'auto_scale_lr.enable': True,
    'test_cfg.fp16': True,
}
SAME = {
    'train_dataloader.num_workers': 0,
    'test_dataloader.pin_memory': True,
    'default_hooks.logger.interval': 1,
    'work_dir': 'elsewhere',
    'train_dataloader.dataset.data_root': '/m/leaf40_white',
    'train_cfg.val_interval': 1,
}


def test_config_hash_changes_only_if_results_may(tmp_path):
    before = config_hash(compose(KEY))
    for name, value in CHANGED.items():
        assert config_hash(compose(KEY, {name: value})) != before, name
    cfg = compose(KEY, SAME)
    assert config_hash(cfg) == before and len(before) == 16
    path = tmp_path / 'config.py'
    path.write_text(cfg.pretty_text)
    assert config_hash(Config.fromfile(path)) == before
    one, two, other = (
        config_hash(compose(KEY, weights={'deit-tiny-p16': file}))
        for file in ('/a/b/deit.pth', 'c/deit.pth', 'other.pth')
    )
    assert before != one == two != other


def test_config_hash_ignores_the_shared_data_folder():
    cfg = compose(replace(KEY, dataset='soygene'))
    before = config_hash(cfg)
    for loader in (cfg.train_dataloader, cfg.test_dataloader):
        loader.dataset.data_root = '/scratch/my sets'
    assert config_hash(cfg) == before
    cfg.train_dataloader.dataset.dataset = 'soylocal'
    assert config_hash(cfg) != before
