# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The two tools that time training as a user runs it, on small sets."""

import re

import pytest
import torch
from mmengine.config import Config
from tiny_run import ROOT, run_tool, write_run

from mmclca.cli.commands import data_pipeline

TOOLS = ROOT / 'tools/benchmark'
CACHED = """
_base_ = 'tiny.py'
train_dataloader = dict(
    dataset=dict(
        pipeline=[
            dict(
                type='mmclca.CacheImages',
                transforms=[
                    dict(type='LoadImageFromFile'),
                    dict(type='Resize', scale=(32, 32)),
                ],
                disk_mb=0,
            ),
            dict(type='PackInputs'),
        ]
    )
)
"""


@pytest.fixture(autouse=True)
def config(tmp_path, monkeypatch):
    """A config with a cache, in the working folder."""
    monkeypatch.setattr(torch, 'set_num_threads', lambda _: None)
    write_run(tmp_path)
    saving = "default_hooks = dict(checkpoint=dict(type='CheckpointHook'))"
    (tmp_path / 'cached.py').write_text(CACHED + saving)
    monkeypatch.chdir(tmp_path)


def run(tool, *arguments):
    with pytest.MonkeyPatch.context() as patch:
        run_tool(patch, TOOLS / f'{tool}.py', *arguments)


@pytest.mark.slow
def test_input_pipeline_with_and_without_the_cache(tmp_path, capsys):
    options = ('--workers', 0, 1, '--epochs', 2, '--out', 'pages/page.md')
    run('data_pipeline', 'cached.py', *options)
    page = (tmp_path / 'pages/page.md').read_text()
    rows = re.findall(r'^\| (\d.*) \|$', page, re.MULTILINE)
    assert rows == re.findall(r'^\| (\d.*) \|$', capsys.readouterr().out, re.M)
    table = [[float(cell) for cell in row.split(' | ')] for row in rows]
    assert [row[0] for row in table] == [0, 1]
    assert all(all(row[1:]) for row in table)
    assert '`cached` (batch 4; LoadImageFromFile, Resize, PackInputs)' in page
    assert 'PyTorch' in page and '--epochs 2' in page


def test_line_has_first_epochs_medians_of_later_ones_and_their_ratio():
    speeds = {False: [50.4, 9.0, 12.0, 10.0], True: [49.6, 31.4, 900.0, 1.0]}
    assert (
        data_pipeline.table_line(2, speeds)
        == '| 2 | 50 | 50 | 10 | 31 | 3.1 |'
    )


def test_page_that_cannot_be_written(capsys):
    with pytest.raises(SystemExit):
        run('data_pipeline', 'cached.py', '--out', '/proc/x/page.md')
    said = capsys.readouterr()
    assert '--out: /proc/x/page.md: ' in said.err
    assert 'workers' not in said.out


def test_nothing_to_compare_without_a_cache():
    with pytest.raises(SystemExit, match='has no mmclca.CacheImages'):
        run('data_pipeline', 'tiny.py', '--workers', 0)


@pytest.mark.slow
def test_a_run_by_the_clock(tmp_path, capsys):
    """The default cell, made small: drawn leaves, one epoch, one test."""
    options = '--epochs 1 --arch deit-tiny --img-size 32 --leaf-size 32'
    more = '--workers 0 --amp none --cfg-options train_dataloader.batch_size=8'
    run('epoch_time', *options.split(), *more.split(), 'model.init_cfg=None')
    out = capsys.readouterr().out
    seconds = re.search(r'first epoch to end of test: ([\d.]+) s', out)[1]
    first = re.search(r'\nfirst epoch: ([\d.]+) s', out)[1]
    assert 0 < float(first) < float(seconds)
    assert 'tested on 240 images: ' in out
    assert (
        len(list((tmp_path / 'data/drawn_cotton80_32px/images').iterdir()))
        == 480
    )
    assert float(re.search(r'peak memory: (\d+) MiB', out)[1]) > 100
    work = tmp_path / 'work_dirs/epoch_time'
    assert [path.name for path in work.glob('*.pth')] == ['epoch_1.pth']
    (dumped,) = work.glob('*.py')
    cfg = Config.fromfile(dumped)
    assert cfg.model.backbone.img_size == 32
    for loader in (cfg.train_dataloader, cfg.val_dataloader):
        cache, crop, *_ = loader.dataset.pipeline
        assert cache.transforms[1].scale == (36, 36)
        assert crop.crop_size == 32


def test_images_of_a_last_batch_that_is_not_full(capsys):
    options = ('--own-data', '--epochs', 2, '--cfg-options')
    run('epoch_time', 'cached.py', *options, 'train_dataloader.batch_size=5')
    out = capsys.readouterr().out
    later = re.search(r'later epochs: ([\d.]+) s.* ([\d.]+) images/s', out)
    seconds, speed = map(float, later.groups())
    assert seconds * speed == pytest.approx(16, rel=0.12)  # 5 + 5 + 5 + 1


@pytest.mark.parametrize(
    'change, options, message',
    [
        (
            'val_dataloader = val_cfg = val_evaluator = None',
            ['--own-data'],
            'no val_dataloader',
        ),
        ('', [], 'is not of Cotton80 .* use --own-data'),
    ],
)
def test_configs_that_cannot_be_timed(tmp_path, change, options, message):
    path = tmp_path / 'other.py'
    path.write_text((tmp_path / 'tiny.py').read_text() + change)
    with pytest.raises(SystemExit, match=message):
        run('epoch_time', path, *options)
    assert not list(tmp_path.glob('data/drawn*'))


@pytest.mark.parametrize(
    'options, message',
    [
        (['--img-size', 65], '--img-size 65: a multiple of 16'),
        (['--arch', 'small'], 'invalid choice'),
        pytest.param(
            *(['--amp', 'bf16'], '--amp bf16 needs a GPU: without one'),
            marks=pytest.mark.skipif(
                torch.cuda.is_available(),
                reason='of machines without a CUDA device',
            ),
        ),
    ],
)
def test_options_that_would_fail_later(capsys, options, message):
    with pytest.raises(SystemExit):
        run('epoch_time', *options)
    assert message in capsys.readouterr().err


def test_own_data_without_the_cache(capsys):
    run('epoch_time', 'cached.py', '--own-data', '--no-cache', '--epochs', 2)
    out = capsys.readouterr().out
    assert 'later epochs:' in out and '(median of 1)' in out
    assert 'tested on 16 images' in out
    cfg = Config.fromfile('work_dirs/epoch_time/cached.py')
    types = [step.type for step in cfg.train_dataloader.dataset.pipeline]
    assert types == ['LoadImageFromFile', 'Resize', 'PackInputs']
