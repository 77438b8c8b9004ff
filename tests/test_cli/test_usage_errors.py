# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""User errors end a tool in one line, before weights are downloaded."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from mmengine.config import Config
from mmengine.runner import CheckpointLoader
from tiny_model import write_tiny
from tiny_run import ROOT, exit_code, load_tool

from mmclca.cli.errors import describe_error
from mmclca.utils.messages import did_you_mean

OPTIONS = '--cfg-options'
CONFIG = ('tiny.py', OPTIONS)
WEIGHTS = ('tiny.py', 'fetched://weights', OPTIONS)
DATASET = 'train_dataloader.dataset'
REDUCER = 'model.backbone.reducer'
TRAIN, TEST = 'train', 'test'
EXPORT, FLOPS = 'deployment/export', 'analysis_tools/get_flops'
# tool, words, and the object or option named in the error
ERRORS = [
    (TRAIN, (*CONFIG, f'{REDUCER}.type=mmclca.TopKK'), 'mmclca.TopK '),
    (TRAIN, (*CONFIG, f'{REDUCER}.keeprate=0.5'), 'keeprate'),
    (TRAIN, (*CONFIG, 'train_cfg.max_epoch=1'), 'max_epoch'),
    (TRAIN, (*CONFIG, 'train_dataloader.batchsize=1'), 'batchsize'),
    (TRAIN, (*CONFIG, 'model.head.num_classes=5'), 'head.num_classes=4'),
    (TRAIN, (*CONFIG, 'model.backbone.img_size=30'), 'img_size=30'),
    (TRAIN, (*CONFIG, f'{DATASET}.data_root=gone'), 'gone'),
    (TRAIN, (*CONFIG, f'{DATASET}.type=CustomDatase'), 'CustomDataset'),
    (TRAIN, (*CONFIG, 'modle.head.num_classes=4'), 'modle'),
    (TRAIN, (*CONFIG, 'model.head.num_classes', '=', '4'), 'KEY=VALUE'),
    (TRAIN, ('tiny2.py',), 'tiny2.py'),
    (TRAIN, (*CONFIG, 'load_from=gone.pth'), 'gone.pth'),
    (TRAIN, (*CONFIG, 'train_cfg.max_epochs=0'), 'max_epochs=0'),
    (TRAIN, (*CONFIG, 'model.backbone.patch_size=0'), 'patch_size=0'),
    (TRAIN, (*CONFIG, 'val_evaluator.topk=99'), 'val_evaluator'),
    (TEST, (*WEIGHTS, f'{REDUCER}.type=mmclca.TopKK'), 'mmclca.TopK '),
    (TEST, (*WEIGHTS, 'model.head.num_classes=5'), 'head.num_classes=4'),
    (TEST, ('tiny.py', 'gone.pth'), 'gone.pth'),
    (TEST, (*WEIGHTS, 'test_dataloader=3'), 'test_dataloader'),
    (TEST, ('tiny.py', 'gone.pth', '--out', 'tiny.py/a.pkl'), 'a.pkl'),
    (EXPORT, (*WEIGHTS, f'{REDUCER}.keeprate=0.5'), 'keeprate'),
    (EXPORT, (*WEIGHTS, 'model.backbone.img_size=30'), 'img_size=30'),
    (EXPORT, ('tiny.py', 'gone.pth'), 'gone.pth'),
    ('predict', ('gone.pth', 'data'), 'gone.pth'),
    (FLOPS, (*CONFIG, f'{REDUCER}.keeprate=0.5'), 'keeprate'),
]


@pytest.fixture
def fetched(monkeypatch):
    """List of requested addresses."""
    asked = []

    def fetch(filename, map_location=None, logger=None):
        asked.append(filename)
        raise RuntimeError(f'{filename} was fetched')

    schemes = {**CheckpointLoader._schemes, 'fetched://': fetch}
    schemes = dict(sorted(schemes.items(), reverse=True))
    monkeypatch.setattr(CheckpointLoader, '_schemes', schemes)
    return asked


@pytest.fixture
def end(tmp_path, monkeypatch, fetched):
    """Run a tool in a folder with a tiny config, whose
    weights need a download; returns the exit code."""
    write_tiny(tmp_path)
    cfg = Config.fromfile(tmp_path / 'tiny.py')
    cfg.load_from = 'fetched://weights'
    cfg.dump(tmp_path / 'tiny.py')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('LOCAL_RANK', '0')
    monkeypatch.setattr('mmengine.runner.runner.collect_env', dict)

    def end(tool, *words):
        path = ROOT / f'tools/{tool}.py'
        main = load_tool(monkeypatch, path, *words)['main']
        return exit_code(main)

    return end


@pytest.mark.parametrize('tool, words, term', ERRORS)
def test_tool_exits_before_download_if_setting_is_wrong(
    tool, words, term, end, fetched, capfd
):
    assert end(tool, *words) == 2
    *_, line = capfd.readouterr().err.splitlines()
    assert re.match(rf'(\S+/)?{Path(tool).name}.py\b.*: error: ', line)
    assert term in line and not fetched


def test_weights_are_downloaded_if_settings_are_valid(end, fetched):
    with pytest.raises(RuntimeError, match='was fetched'):
        end(TRAIN, 'tiny.py')
    assert fetched == ['fetched://weights']


def test_debug_keeps_traceback_if_setting_is_wrong(end):
    with pytest.raises(TypeError, match='unexpected keyword argument'):
        end(TRAIN, '--debug', *CONFIG, f'{REDUCER}.keeprate=0.5')
    with pytest.raises(FileNotFoundError):
        end('predict', 'gone.pth', 'data', '--debug')


def test_internal_error_keeps_traceback(end, monkeypatch):
    def wrong(self, inputs, data_samples):
        raise ValueError('a bug')

    monkeypatch.setattr('mmpretrain.models.ImageClassifier.loss', wrong)
    with pytest.raises(ValueError, match='a bug'):
        end(TRAIN, *CONFIG, 'load_from=None')


@pytest.mark.parametrize(
    'code', ["{}['epoch']", "('elm',).index('ash')", "int('ash')", '[][3]']
)
def test_line_is_named_if_python_names_no_setting(code):
    names = {}
    exec(compile(f'def read():\n    {code}', __file__, 'exec'), names)
    with pytest.raises((LookupError, ValueError)) as error:
        names['read']()
    assert '(read)' in describe_error(error.value)


def test_run_returns_exit_code_if_child_fails(capfd):
    def main():
        subprocess.run([sys.executable, '-c', 'exit(7)'], check=True)

    assert exit_code(main) == 7
    assert capfd.readouterr().err == ''


def test_did_you_mean_suggests_close_names_only():
    assert did_you_mean('owl', ['keep_rate', 'num_stages']) == ''
    assert 'keep_rate' in did_you_mean('rate', ['keep_rate'])
