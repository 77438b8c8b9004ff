# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import json

import mmengine
import pytest
import torch
from PIL import Image
from tiny_run import ROOT, load_tool, write_run

from mmclca.configs import read_config
from mmclca.evaluation.predictions import read_results
from mmclca.visualization.batches import dataset_of

TOOL = ROOT / 'tools/analysis_tools/analyze_results.py'
RED = (200, 30, 60)
# classes of four images each; predictions that are wrong, and all scores
WRONG = {2: 3, 9: 0}
SCORES = [0.5 + 0.03 * i for i in range(16)]


def write_results(path, count=16):
    rows = []
    for index in range(count):
        label = WRONG.get(index, index // 4)
        score = torch.full((4,), (1 - SCORES[index]) / 3)
        score[label] = SCORES[index]
        rows.append(
            dict(
                sample_idx=index,
                gt_label=torch.tensor([index // 4]),
                pred_label=torch.tensor([label]),
                pred_score=score,
            )
        )
    mmengine.dump(rows[::-1], path)
    return path


@pytest.fixture
def config(tmp_path):
    path = write_run(tmp_path)
    Image.new('RGB', (64, 32), RED).save(tmp_path / 'data/oak/3.png')
    return path


@pytest.fixture
def main(monkeypatch, tmp_path):
    def main(config, results, *words, out='out'):
        words = (config, results, '--out-dir', tmp_path / out, *words)
        load_tool(monkeypatch, TOOL, *words)['main']()
        return tmp_path / out

    return main


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_best_and_worst(config, main, tmp_path, capsys):
    out = main(config, write_results(tmp_path / 'r.pkl'), '--topk', 3)
    assert names(out / 'success') == [
        '001_3.png',
        '002_2.png',
        '003_1.png',
        'success.json',
    ]
    assert names(out / 'fail') == ['001_1.png', '002_2.png', 'fail.json']
    best = json.loads((out / 'success/success.json').read_text())
    assert [row['sample_idx'] for row in best] == [15, 14, 13]
    worst = json.loads((out / 'fail/fail.json').read_text())
    assert [row['sample_idx'] for row in worst] == [9, 2]
    assert worst[0]['gt_label'] == [2] and worst[0]['pred_label'] == [0]
    assert max(worst[0]['pred_score']) == pytest.approx(SCORES[9])
    assert f'{out / "fail"}: 2' in capsys.readouterr().out


def test_what_stands_on_a_picture(config, monkeypatch, tmp_path):
    results = write_results(tmp_path / 'r.pkl')
    words = (config, results, '--out-dir', tmp_path / 'out')
    tool = load_tool(monkeypatch, TOOL, *words)
    dataset = dataset_of(read_config(config), pipeline=[])
    (worst,) = (
        one
        for one in tool['predictions'](read_results(results))
        if one['sample_idx'] == 9
    )
    heading = tool['heading_of'](worst, dataset.metainfo['classes'])
    assert heading == 'ash, 0.770\ntruth: elm'
    assert tool['heading_of'](worst, None) == '0, 0.770\ntruth: 2'


def test_wrong_input(config, main, tmp_path, capsys):
    fewer = write_results(tmp_path / 'fewer.pkl', 15)
    with pytest.raises(SystemExit, match='15 predictions, the test set .* 16'):
        main(config, fewer)
    mmengine.dump([dict(gt_label=0)], fewer)
    with pytest.raises(SystemExit, match='no pred_label, no pred_score, no s'):
        main(config, fewer)
    with pytest.raises(SystemExit, match='gone.pkl'):
        main(config, 'gone.pkl')
    with pytest.raises(SystemExit, match='no such|No such'):
        main('gone.py', fewer)
    with pytest.raises(SystemExit):
        main(config, fewer, '--topk', 0)
    assert '--topk: 0: at least 1' in capsys.readouterr().err
    assert not (tmp_path / 'out').exists()
