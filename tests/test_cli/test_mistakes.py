# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A user's mistake ends a tool in one line, before weights are fetched."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from mmengine.config import Config
from mmengine.runner import CheckpointLoader
from tiny_model import write_tiny
from tiny_run import ROOT, exit_code, load_tool

from mmclca.cli.errors import explained
from mmclca.utils.messages import did_you_mean

OPTIONS = '--cfg-options'
CONFIG = ('tiny.py', OPTIONS)
WEIGHTS = ('tiny.py', 'fetched://weights', OPTIONS)
DATASET = 'train_dataloader.dataset'
REDUCER = 'model.backbone.reducer'
TRAIN, TEST = 'train', 'test'
EXPORT = 'deployment/export'
# tool, words, what came, what is allowed, how to fix it
MISTAKES = [
    (
        *(TRAIN, (*CONFIG, f'{REDUCER}.type=mmclca.TopKK')),
        *("type='mmclca.TopKK'", 'registered', 'do you mean mmclca.TopK '),
    ),
    (
        *(TRAIN, (*CONFIG, f'{REDUCER}.keeprate=0.5')),
        *('keeprate', '__init__', 'unexpected keyword'),
    ),
    (
        *(TRAIN, (*CONFIG, 'train_cfg.max_epoch=1')),
        *('max_epoch', 'EpochBasedTrainLoop', 'unexpected keyword'),
    ),
    (
        *(TRAIN, (*CONFIG, 'train_dataloader.batchsize=1')),
        *('batchsize', 'DataLoader', 'unexpected keyword'),
    ),
    (
        *(TRAIN, (*CONFIG, 'model.head.num_classes=5')),
        *(
            'num_classes is 5',
            '4 classes in the train set',
            'head.num_classes=4',
        ),
    ),
    (
        *(TRAIN, (*CONFIG, 'model.backbone.img_size=30')),
        *('img_size=30', 'a multiple of', 'such as 32'),
    ),
    (
        *(TRAIN, (*CONFIG, 'train_dataloader.dataset.data_root=gone')),
        *('gone', 'there is no|not exist|find', 'check|find'),
    ),
    (
        *(TRAIN, (*CONFIG, 'modle.head.num_classes=4')),
        *('modle.head', 'no setting modle', 'do you mean model'),
    ),
    (
        *(TRAIN, (*CONFIG, 'model.head.num_classes', '=', '4')),
        *('model.head.num_classes', 'KEY=VALUE', 'no spaces'),
    ),
    (*(TRAIN, ('tiny2.py',)), *('tiny2.py', 'no config file', 'list_models')),
    (
        *(TRAIN, (*CONFIG, 'load_from=gone.pth')),
        *('gone.pth', 'checkpoint', 'does not exist'),
    ),
    (
        *(TEST, (*WEIGHTS, f'{REDUCER}.type=mmclca.TopKK')),
        *("type='mmclca.TopKK'", 'registered', 'do you mean mmclca.TopK '),
    ),
    (
        *(TEST, (*WEIGHTS, 'model.head.num_classes=5')),
        *(
            'num_classes is 5',
            '4 classes in the test set',
            'head.num_classes=4',
        ),
    ),
    (
        *(TEST, ('tiny.py', 'gone.pth')),
        *('gone.pth', 'checkpoint', 'does not exist'),
    ),
    (
        *(TRAIN, (*CONFIG, 'train_cfg.max_epochs=0')),
        *('max_epochs=0', 'integer', '1 or more'),
    ),
    (
        *(TRAIN, (*CONFIG, 'model.backbone.patch_size=0')),
        *('patch_size=0', 'integer', '1 or more'),
    ),
    (
        *(TRAIN, (*CONFIG, 'val_evaluator.topk=99')),
        *('val_evaluator', '99', '4, the number'),
    ),
    (
        *(TEST, (*WEIGHTS, 'test_dataloader=3')),
        *('test_dataloader', 'group', 'test_dataloader.batch_size'),
    ),
    (
        *(TEST, ('tiny.py', 'gone.pth', '--out', 'tiny.py/a.pkl')),
        *('a.pkl', 'tiny.py', 'not a folder'),
    ),
    (
        *(EXPORT, (*WEIGHTS, f'{REDUCER}.keeprate=0.5')),
        *('keeprate', '__init__', 'unexpected keyword'),
    ),
    (
        *(EXPORT, (*WEIGHTS, 'model.backbone.img_size=30')),
        *('img_size=30', 'a multiple of', 'such as 32'),
    ),
    (
        *(EXPORT, ('tiny.py', 'gone.pth')),
        *('gone.pth', 'checkpoint', 'does not exist'),
    ),
    (
        *(TRAIN, (*CONFIG, f'{DATASET}.type=CustomDatase')),
        *("type='CustomDatase'", 'registered', 'do you mean CustomDataset'),
    ),
    (
        *('predict', ('gone.pth', 'data')),
        *('gone.pth', 'checkpoint', 'does not exist'),
    ),
    (
        *('analysis_tools/get_flops', (*CONFIG, f'{REDUCER}.keeprate=0.5')),
        *('keeprate', '__init__', 'unexpected keyword'),
    ),
]


@pytest.fixture
def fetched(monkeypatch):
    """Addresses that were asked for."""
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
    """Runs a tool in a folder with the tiny config, whose weights are to be
    fetched; gives its exit code."""
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


@pytest.mark.parametrize('tool, words, came, allowed, fix', MISTAKES)
def test_one_line_before_weights_are_fetched(
    tool, words, came, allowed, fix, end, fetched, capfd
):
    assert end(tool, *words) == 2
    *_, line = capfd.readouterr().err.splitlines()
    assert re.match(rf'(\S+/)?{Path(tool).name}.py\b.*: error: ', line)
    for part in (came, allowed, fix):
        assert re.search(part, line), line
    assert not fetched


def test_weights_are_fetched_where_nothing_is_wrong(end, fetched):
    with pytest.raises(RuntimeError, match='was fetched'):
        end(TRAIN, 'tiny.py')
    assert fetched == ['fetched://weights']


def test_debug_shows_the_traceback(end):
    with pytest.raises(TypeError, match='unexpected keyword argument'):
        end(TRAIN, '--debug', *CONFIG, f'{REDUCER}.keeprate=0.5')
    with pytest.raises(FileNotFoundError):
        end('predict', 'gone.pth', 'data', '--debug')


def test_errors_of_the_program_keep_their_traceback(end, monkeypatch):
    def wrong(self, inputs, data_samples):
        raise ValueError('a bug')

    monkeypatch.setattr('mmpretrain.models.ImageClassifier.loss', wrong)
    with pytest.raises(ValueError, match='a bug'):
        end(TRAIN, *CONFIG, 'load_from=None')


def test_nothing_close_is_not_suggested():
    assert did_you_mean('owl', ['keep_rate', 'num_stages']) == ''
    assert did_you_mean('rate', ['keep_rate']) == ' (do you mean keep_rate?)'


@pytest.mark.parametrize(
    'code', ["{}['epoch']", "('elm',).index('ash')", "int('ash')", '[][3]']
)
def test_line_is_named_if_python_names_no_setting(code):
    names = {}
    exec(compile(f'def read():\n    {code}', __file__, 'exec'), names)
    with pytest.raises((LookupError, ValueError)) as error:
        names['read']()
    assert '(read)' in explained(error.value)


def test_child_that_failed_has_said_why(capfd):
    def main():
        subprocess.run([sys.executable, '-c', 'exit(7)'], check=True)

    assert exit_code(main) == 7
    assert capfd.readouterr().err == ''
