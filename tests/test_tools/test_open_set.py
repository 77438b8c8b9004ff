# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import csv
import json

import pytest
import torch
from tiny_model import write_tiny
from tiny_run import ROOT, run_tool, write_images

from mmclca.apis import Probe, TokenReductionInferencer
from mmclca.apis.features import extract_features, extract_logits
from mmclca.datasets.photos import list_images
from mmclca.evaluation.open_set import SCORES, auroc, false_positive_rate
from mmclca.models.heads import keep_references, nearest_cosine

TOOL = ROOT / 'tools/open_set.py'
PREDICT = ROOT / 'tools/predict.py'


@pytest.fixture
def folder(tmp_path):
    """Folder with tiny.pth, data, test and unknown (unknown classes)."""
    torch.manual_seed(0)
    write_tiny(tmp_path)
    write_images(tmp_path / 'test', per_class=3, seed=1)
    write_images(tmp_path / 'other', per_class=3, seed=2)
    (tmp_path / 'unknown').mkdir()
    for number, path in enumerate((tmp_path / 'other').rglob('*.png')):
        path.rename(tmp_path / f'unknown/{number}.png')
    return tmp_path


@pytest.fixture
def fit(run, folder):
    """Run the tool on tiny.pth and return its output."""
    words = 'open_set.py', folder / 'tiny.pth', '--device=cpu'
    return lambda *more: run(*words, *more).out


def scores_of(folder, place, score):
    inferencer = TokenReductionInferencer(folder / 'tiny.pth', device='cpu')
    paths = list_images(folder / place).paths
    if score in SCORES:
        return SCORES[score](extract_logits(inferencer, paths)[0])
    features, _ = extract_features(inferencer, paths)
    return nearest_cosine(inferencer.model.head.references, features)


def test_warning_is_printed_if_known_images_are_few(
    monkeypatch, capsys, folder
):
    for accept, few in ((0.95, True), (0.9375, False)):
        words = '--device=cpu', '--accept', accept, '--known', folder / 'data'
        run_tool(monkeypatch, TOOL, folder / 'tiny.pth', *words)
        said = capsys.readouterr().err
        assert ('only 16 known images' in said) == few


@pytest.mark.parametrize('score', ['energy', 'nearest'])
def test_threshold_is_measured_and_used_by_predict(
    score, fit, folder, monkeypatch, capsys
):
    if score == 'nearest':
        probe = Probe(folder / 'tiny.pth', None, 'cpu')
        keep_references(probe.model, torch.randn(9, 24))
        probe.save(folder / 'tiny.pth')
    printed = fit(
        *('--score', score, '--accept', 0.75, '--known', folder / 'data'),
        *('--test', folder / 'test', '--unknown', folder / 'unknown'),
    )
    out = folder / 'tiny.threshold.json'
    assert f'Saved      {out}\n' in printed
    found = json.loads(out.read_text())
    known, test, unknown = (
        scores_of(folder, place, score)
        for place in ('data', 'test', 'unknown')
    )
    threshold = found['threshold']
    assert (known >= threshold).sum() == 12  # out of 16
    (row,) = (row for row in found['scores'] if row['score'] == score)
    assert row['threshold'] == threshold
    assert row['auroc'] == pytest.approx(auroc(test, unknown))
    assert row['fpr95'] == pytest.approx(false_positive_rate(test, unknown))
    lost = (test < threshold).double().mean().item()
    assert row['known_lost'] == pytest.approx(lost)
    rejected = (unknown < threshold).double().mean().item()
    assert row['unknown_rejected'] == pytest.approx(rejected)
    assert found['images'] == dict(known=16, test=12, unknown=12)
    assert round(12 * found['test_accuracy'], 9) in range(13)
    assert f'{row["auroc"]:.4f}' in printed

    results = folder / 'r.csv'
    capsys.readouterr()
    run_tool(
        *(monkeypatch, PREDICT, folder / 'tiny.pth', folder / 'unknown'),
        *('--threshold', out, '--device=cpu', '--out', results),
    )
    rows = list(csv.DictReader(results.open()))
    hidden = [row['known'] == 'no' for row in rows]
    assert sum(hidden) == (unknown < threshold).sum()
    lines = capsys.readouterr().out.splitlines()
    for row, line, is_hidden in zip(rows, lines, hidden, strict=True):
        value = float(row['known_score'])
        assert is_hidden == (value < threshold)
        assert f' {row["pred_class"]} {float(row["score_1"]):.1%}' in line
        said = f' {value:.3f} < '
        assert (said in line) == is_hidden


def test_known_images_default_to_val_split(fit, folder):
    out = folder / 'new/t.json'
    config = '--config', folder / 'tiny.py'
    fit('--out', out, *config)
    split = json.loads(out.read_text())
    assert split['images'] == dict(known=16)
    assert 'auroc' not in split['scores'][0]
    fit('--out', out, '--known', folder / 'data')
    assert json.loads(out.read_text()) == split
    place = f'val_dataloader.dataset.data_root={folder / "test"}'
    fit('--out', out, *config, '--cfg-options', place)
    assert json.loads(out.read_text())['images'] == dict(known=12)


def test_warning_is_printed_if_test_images_chose_the_threshold(
    folder, monkeypatch, capsys
):
    arguments = [folder / 'tiny.pth', '--device=cpu']
    arguments += ['--config', folder / 'tiny.py']
    arguments += ['--unknown', folder / 'unknown']
    run_tool(monkeypatch, TOOL, *arguments)  # both splits use the folder data
    said = capsys.readouterr().err
    assert '16 of 16 test images (test split) are also used' in said
    run_tool(monkeypatch, TOOL, *arguments, '--test', folder / 'test')
    assert 'are also used' not in capsys.readouterr().err
