# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import matplotlib
import mmcv
import numpy as np
import pytest
from mmengine.registry import init_default_scope
from PIL import Image
from tiny_run import CLASSES, ROOT, load_tool, write_run

from mmclca.configs import read_config
from mmclca.visualization.pipeline_steps import with_recorded_steps

matplotlib.use('agg')
TOOL = ROOT / 'tools/visualization/browse_dataset.py'
RED = (200, 30, 60)
PIPELINE = """
cached = dict(
    type='mmclca.CacheImages',
    memory_mb=0,
    disk_mb=1,
    transforms=[
        dict(type='LoadImageFromFile'),
        dict(type='Resize', scale=(24, 24)),
    ],
)
pipeline = [
    cached,
    dict(type='RandomCrop', crop_size=16),
    dict(type='PackInputs'),
]
train_dataloader['dataset']['pipeline'] = pipeline
"""


@pytest.fixture
def config(tmp_path):
    path = write_run(tmp_path)
    path.write_text(path.read_text() + PIPELINE)
    red = Image.new('RGB', (40, 20), RED)
    red.save(tmp_path / 'data' / 'ash' / '0.png')
    return path


@pytest.fixture
def browse(monkeypatch, tmp_path):
    """Runs the tool in this process; gives pictures by name, RGB."""

    def browse(*words):
        out = tmp_path / 'out'
        load_tool(monkeypatch, TOOL, *words, '-o', out)['main']()
        return {
            path.name: mmcv.imread(path, channel_order='rgb')
            for path in sorted(out.iterdir())
        }

    return browse


def red_area(picture):
    """Height and width of what is red."""
    rows, columns = (picture == RED).all(2).nonzero()
    return np.ptp(rows) + 1, np.ptp(columns) + 1


def test_modes(config, browse):
    areas = {}
    for mode in ('original', 'transformed', 'concat', 'pipeline'):
        (picture,) = browse(config, '-m', mode, '-n', 1).values()
        areas[mode] = red_area(picture)
    height, width = areas['original']
    assert width == pytest.approx(2 * height, rel=0.05) and height > 200
    height, width = areas['transformed']
    assert width == pytest.approx(height, rel=0.05)
    assert areas['pipeline'][1] > 1.5 * areas['concat'][1]


def test_size_and_channel_order(config, browse):
    words = ('-m', 'original', '-n', 1)
    (plain,) = browse(config, *words).values()
    (large,) = browse(config, *words, '--rescale-factor', 2).values()
    assert red_area(large)[0] == pytest.approx(2 * red_area(plain)[0], rel=0.1)
    (swapped,) = browse(config, *words, '--channel-order', 'RGB').values()
    assert (swapped == RED[::-1]).all(2).sum() > 10_000


def test_steps_within_the_cache_are_shown(config):
    init_default_scope('mmpretrain')
    cfg = read_config(config)
    plain = cfg.train_dataloader.dataset
    for settings in (
        plain,
        dict(type='RepeatDataset', times=2, dataset=plain),
    ):
        dataset, pipeline = with_recorded_steps(settings)
        assert dataset[0]['inputs'].shape == (3, 16, 16)
        shapes = [(name, image.shape[:2]) for name, image in pipeline.images]
        assert shapes == [
            ('original', (20, 40)),
            ('Resize', (24, 24)),
            ('RandomCrop', (16, 16)),
        ]
    assert len(dataset) == 32


def test_classes_of_a_sample(config, monkeypatch):
    tool = load_tool(monkeypatch, TOOL, config, '-o', 'out')
    init_default_scope('mmpretrain')
    cfg = read_config(config)
    dataset, _ = with_recorded_steps(cfg.train_dataloader.dataset)
    sample = dataset[9]['data_samples']
    assert tool['label_of'](sample, CLASSES) == 'elm (2)'
    assert tool['label_of'](sample, None) == '2'
    assert tool['file_of'](sample, 9) == '00009_1.png'


def test_wrong_input(config, browse, monkeypatch, capsys):
    option = ('--cfg-options', 'val_dataloader=None')
    with pytest.raises(SystemExit, match='has no val_dataloader.dataset'):
        browse(config, '--phase', 'val', *option)
    option = ('--cfg-options', 'train_dataloader.dataset.data_root=nowhere')
    with pytest.raises(SystemExit, match='nowhere'):
        browse(config, *option)
    with pytest.raises(SystemExit):
        load_tool(monkeypatch, TOOL, config)['main']()
    assert 'give --output-dir FOLDER' in capsys.readouterr().err
    with pytest.raises(SystemExit):
        browse(config, '-n', 0)
    assert '--show-number: 0: at least 1' in capsys.readouterr().err
