# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import json

import matplotlib
import mmengine
import pytest
import torch
from tiny_model import write_tiny
from tiny_run import ROOT, load_tool, run_tool

matplotlib.use('agg')
TOOL = ROOT / 'tools/analysis_tools/confusion_matrix.py'
PAIRS = [(0, 0), (0, 1), (0, 1), (1, 1), (2, 2), (3, 0)]
MATRIX = [[1, 2, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0]]


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('LOCAL_RANK', '0')
    write_tiny(tmp_path)
    return tmp_path / 'tiny.py'


@pytest.fixture
def results(tmp_path):
    """File with six predictions."""
    scores = torch.eye(4) * 0.6 + 0.1
    rows = [
        dict(
            gt_label=torch.tensor([true]),
            pred_label=torch.tensor([predicted]),
            pred_score=scores[predicted],
        )
        for true, predicted in PAIRS
    ]
    path = tmp_path / 'results.pkl'
    mmengine.dump(rows, path)
    return path


@pytest.fixture
def main(monkeypatch):
    return lambda *words: load_tool(monkeypatch, TOOL, *words)['main']()


def test_matrix_of_predictions_is_counted(
    config, results, main, tmp_path, capsys
):
    main(config, results, '--out', tmp_path / 'new' / 'matrix.json')
    assert json.loads((tmp_path / 'new/matrix.json').read_text()) == MATRIX
    assert capsys.readouterr().out.splitlines() == [
        'Accuracy   3 of 6 images correct',
        'Confused   ash as beech: 2',
        'Confused   oak as ash: 1',
        f'Saved      {tmp_path}/new/matrix.json',
    ]
    main(config, results, '--out', tmp_path / 'matrix.pkl')
    assert mmengine.load(tmp_path / 'matrix.pkl').tolist() == MATRIX


def test_matrix_of_checkpoint_equals_matrix_of_its_predictions(
    config, main, monkeypatch, tmp_path
):
    test = ROOT / 'tools/test.py'
    run_tool(monkeypatch, test, config, 'tiny.pth', '--out', 'of_test.pkl')
    main(config, 'tiny.safetensors', '--out', 'a.json')
    main(config, 'of_test.pkl', '--out', 'b.json')
    first, second = (
        json.loads((tmp_path / name).read_text())
        for name in ('a.json', 'b.json')
    )
    assert first == second
    assert [sum(row) for row in first] == [4] * 4
    assert [path.name for path in tmp_path.glob('*.pkl')] == ['of_test.pkl']


def test_matrix_has_class_numbers_without_the_test_set(
    config, results, main, capsys
):
    option = 'test_dataloader.dataset.ann_file=gone.txt'
    main(config, results, '--cfg-options', option)
    out, err = capsys.readouterr()
    assert 'class numbers' in err and '0 as 1: 2' in out
