# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""tools/test.py --benchmark, for one checkpoint and over seeds."""

import json
from statistics import mean, stdev

import pytest
import torch
from mmpretrain import get_model
from PIL import Image
from tiny_run import ROOT, run_tool, write_run

CONFIG = """
_base_ = 'tiny.py'
model = dict(head=dict(num_classes=1000))
data_preprocessor = dict(num_classes=1000)
test_dataloader = dict(dataset=dict(
    _delete_=True, type='ImageNet', data_root='data/imagenet', split='val',
    pipeline=[
        dict(type='LoadImageFromFile'),
        dict(type='Resize', scale=(32, 32)),
        dict(type='PackInputs'),
    ]))
"""
V2 = 'data/imagenetv2-matched-frequency-format-val'


@pytest.fixture
def test(tmp_path, monkeypatch):
    """Test tiny checkpoints on a benchmark; the metrics."""
    write_run(tmp_path)
    (tmp_path / 'imagenet.py').write_text(CONFIG)
    (tmp_path / 'data/imagenet/meta').mkdir(parents=True)
    (tmp_path / 'data/imagenet/val').mkdir()
    names = [f'ILSVRC2012_val_{n:08d}.JPEG' for n in range(1, 5)]
    for n, name in enumerate(names):
        image = Image.new('RGB', (32, 32), (60 * n, 0, 0))
        image.save(tmp_path / 'data/imagenet/val' / name)
        (tmp_path / V2 / str(n)).mkdir(parents=True)
        image.save(tmp_path / V2 / str(n) / 'a.jpeg')
    text = ''.join(f'{name} 0\n' for name in names)
    (tmp_path / 'data/imagenet/meta/val.txt').write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('LOCAL_RANK', '0')

    def test(*checkpoints, config='imagenet.py', benchmark='real'):
        run_tool(
            *(monkeypatch, ROOT / 'tools/test.py', config, *checkpoints),
            *('--benchmark', benchmark, '--out', 'out.json'),
            *('--out-item', 'metrics'),
        )
        return json.loads((tmp_path / 'out.json').read_text())

    return test


def test_several_checkpoints_give_mean_and_standard_deviation(test, tmp_path):
    for seed, label in enumerate((3, 0)):  # the only prediction of each model
        model = get_model('imagenet.py')
        torch.nn.init.zeros_(model.head.fc.weight)
        model.head.fc.bias.data[label] = 100.0
        torch.save(model.state_dict(), f'{seed}.pth')
    real = [[0], [3, 0], [], [3], *[[]] * 49_996]
    (tmp_path / 'data/imagenet/real.json').write_text(json.dumps(real))
    shares = [test(f'{seed}.pth')['accuracy/top1'] for seed in (0, 1)]
    assert shares == pytest.approx([200 / 3, 200 / 3])
    assert test('0.pth', benchmark='v2')['accuracy/top1'] == 25
    real[3] = [0, 3]
    (tmp_path / 'data/imagenet/real.json').write_text(json.dumps(real))
    shares = 200 / 3, 100
    both = test('0.pth', '1.pth')
    assert both['accuracy/top1'] == pytest.approx(mean(shares))
    assert both['accuracy/top1_std'] == pytest.approx(stdev(shares))
