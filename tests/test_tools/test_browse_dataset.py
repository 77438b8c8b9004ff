# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import matplotlib
import mmcv
import numpy as np
import pytest
from mmengine.config import Config
from mmengine.registry import init_default_scope
from PIL import Image
from tiny_run import CLASSES, ROOT, run_tool, write_run

from mmclca.cli.commands import browse_dataset as command

matplotlib.use('agg')
TOOL = ROOT / 'tools/visualization/browse_dataset.py'
RED = (200, 30, 60)
PIPELINE = """
cached = dict(
    type='mmclca.CacheImages',
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
    """Run the tool; return height and width of the red area
    in the first picture (blue if the channels are swapped)."""

    def browse(*words, colour=RED):
        out = tmp_path / 'out'
        run_tool(monkeypatch, TOOL, *words, '-o', out, '-n', 1)
        picture = mmcv.imread(out / '00000_0.png', channel_order='rgb')
        rows, columns = (picture == colour).all(2).nonzero()
        return np.ptp(rows) + 1, np.ptp(columns) + 1

    return browse


def test_mode_and_scale_determine_picture_size(config, browse):
    modes = ('original', 'transformed', 'concat', 'pipeline')
    areas = {mode: browse(config, '-m', mode) for mode in modes}
    height, width = areas['original']
    assert width == pytest.approx(2 * height, rel=0.05) and height > 200
    height, width = areas['transformed']
    assert width == pytest.approx(height, rel=0.05)
    assert areas['pipeline'][1] > 1.5 * areas['concat'][1]
    large = browse(config, '-m', 'original', '--rescale-factor', 2)
    assert large[0] == pytest.approx(2 * areas['original'][0], rel=0.1)
    assert browse(config, '-c', 'RGB', colour=RED[::-1])[0] > 200


@pytest.mark.parametrize('repeated', [False, True])
def test_recorded_steps_include_cached_ones(config, repeated):
    """Also checks picture names and class labels."""
    init_default_scope('mmpretrain')
    settings = Config.fromfile(config).train_dataloader.dataset
    if repeated:
        settings = dict(type='RepeatDataset', times=2, dataset=settings)
    dataset, images = command.recording_dataset(settings)
    assert len(dataset) == 16 * (1 + repeated)
    assert dataset[0]['inputs'].shape == (3, 16, 16)
    shapes = [(name, image.shape[:2]) for name, image in images]
    steps = ('original', (20, 40)), ('Resize', (24, 24))
    assert shapes == [*steps, ('RandomCrop', (16, 16))]
    sample = dataset[9]['data_samples']
    assert command.describe_labels(sample, CLASSES) == 'elm (2)'
    assert command.describe_labels(sample, None) == '2'
    assert command.picture_name(sample, 9) == '00009_1.png'
