# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import json

import mmengine
import pytest
import torch
from PIL import Image
from tiny_run import ROOT, run_tool, write_run

TOOL = ROOT / 'tools/analysis_tools/analyze_results.py'
# wrong predictions by image, four images per class; scores
WRONG = {2: 3, 9: 0}
SCORES = [0.5 + 0.03 * i for i in range(16)]


def row(index):
    label = WRONG.get(index, index // 4)
    score = torch.full((4,), (1 - SCORES[index]) / 3)
    score[label] = SCORES[index]
    return dict(
        sample_idx=index,
        gt_label=torch.tensor([index // 4]),
        pred_label=torch.tensor([label]),
        pred_score=score,
    )


@pytest.fixture
def analyze(monkeypatch, tmp_path):
    """Run the tool in a folder with config and results."""
    write_run(tmp_path)
    Image.new('RGB', (64, 32), 'red').save(tmp_path / 'data/oak/3.png')
    rows = list(map(row, reversed(range(16))))
    for name, some in dict(r=rows, few=rows[1:], bad=[{}]).items():
        mmengine.dump(some, tmp_path / f'{name}.pkl')
    monkeypatch.chdir(tmp_path)
    return lambda words: run_tool(monkeypatch, TOOL, *words.split())


def test_best_and_worst_predictions_are_ranked(analyze, tmp_path, capsys):
    analyze('tiny.py r.pkl --topk 3 --out-dir out')
    names = sorted(p.name for p in tmp_path.glob('out/*/*'))
    fails, successes = ['001_1.png', '002_2.png'], ['001_3.png', '003_1.png']
    both = ['fail.json', 'success.json']
    assert names == sorted([*fails, *successes, '002_2.png', *both])
    best, worst = (
        json.loads((tmp_path / f'out/{kind}/{kind}.json').read_text())
        for kind in ('success', 'fail')
    )
    assert [one['sample_idx'] for one in best] == [15, 14, 13]
    assert [one['sample_idx'] for one in worst] == [9, 2]
    assert 'out/fail (2 ' in capsys.readouterr().out
