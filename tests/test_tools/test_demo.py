# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""``make demo``: accuracy, picture, reproducibility."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import mmcv
import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow
# enough for accuracy above chance, in a third of the time
FEWER_EPOCHS = ('train_cfg.max_epochs=8', 'param_scheduler.0.T_max=8')
ONE_EPOCH = 'train_cfg.max_epochs=1'


def demo(folder, *options):
    """Run the demo with its own data folder; return its output."""
    done = subprocess.run(
        [sys.executable, 'tools/demo.py', '--work-dir', folder / 'run']
        + list(options),
        cwd=ROOT,
        env=dict(os.environ, MMCLCA_DATA=str(folder)),
        text=True,
        stdout=subprocess.PIPE,
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize(
    'options, least',
    [
        pytest.param(
            ['--per-class', '20', '--cfg-options', ONE_EPOCH],
            0,
            marks=pytest.mark.first,
        ),
        (['--cfg-options', *FEWER_EPOCHS], 55),
    ],
)
def test_demo_prints_accuracy_and_cost(tmp_path, options, least):
    said = demo(tmp_path, *options)
    percent = re.search(r'top-1 ([\d.]+)% \(chance level ([\d.]+)%\)', said)
    top1, chance = map(float, percent.groups())
    assert chance == 12.5 and top1 >= least
    gmacs, plain_gmacs = re.findall(r'\| 32 \| (\d\.\d\d) \|', said)
    assert float(gmacs) < 0.65 * float(plain_gmacs)
    picture = mmcv.imread(tmp_path / 'run/kept_patches.png')
    assert min(picture.shape[:2]) > 300 and picture.std() > 10


def losses(folder, seed):
    short = [ONE_EPOCH, 'default_hooks.logger.interval=1']
    few = '--per-class', '30', '--seed', seed
    demo(folder, *few, '--cfg-options', *short)
    (record,) = (folder / 'run').glob('*/vis_data/20*.json')
    lines = map(json.loads, record.read_text().splitlines())
    return [line['loss'] for line in lines if 'loss' in line]


def test_demo_depends_on_the_seed_only(tmp_path):
    first = losses(tmp_path, '3')
    assert len(first) > 1
    assert losses(tmp_path, '3') == first
    assert losses(tmp_path, '4') != first


def test_demo_refuses_folder_with_other_files(tmp_path):
    precious = tmp_path / 'run' / 'precious.txt'
    precious.parent.mkdir()
    precious.touch()
    with pytest.raises(subprocess.CalledProcessError):
        demo(tmp_path)
    assert precious.exists()
