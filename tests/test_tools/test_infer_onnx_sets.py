# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Prediction sets and class lists of the standalone script."""

import csv
import json

import cv2
import numpy as np
import onnx
import pytest
import torch
from small_web_app import GRAPH
from tiny_export import INFER
from tiny_run import exit_code, load_tool

from mmclca.apis.answers import Answers, SetRule
from mmclca.deployment import describe_sets, prediction_sets
from mmclca.evaluation.conformal import Calibration

CLASSES = ['ash', 'elm', 'fir', 'oak', 'oak b', 'yew']
COARSE = dict.fromkeys(CLASSES, 'tree') | {'ash': 'shrub'}
PREPARATION = dict(
    steps=[], channel_order='RGB', mean=[0] * 3, std=[1] * 3, size=[9, 9]
)


def calibrate(number=60, unit='photo', groups=None):
    generator = np.random.default_rng(0)  # the same with any torch
    logits = torch.from_numpy(1.5 * generator.standard_normal((number, 6)))
    probabilities = logits.float().softmax(1)
    bounds = probabilities.cumsum(1)[:, :-1]
    labels = (bounds < torch.from_numpy(generator.random((number, 1)))).sum(1)
    groups = torch.arange(number) if groups is None else groups
    return Calibration(probabilities, labels, groups, unit)


@pytest.fixture
def infer(monkeypatch, capsys, tmp_path):
    """Run the script on some photos; exit code, table, output and errors."""
    colors = np.random.default_rng(0).integers(0, 256, (9, 3))
    for i, color in enumerate(colors):
        photo = np.full((9, 9, 3), color, np.uint8)
        cv2.imwrite(str(tmp_path / f'{i}.png'), photo)

    def infer(sure, *words):
        weight = np.random.default_rng(0).normal(scale=0.01, size=18)
        numbers = ', '.join(map(str, weight.tolist()))
        file = onnx.parser.parse_model(GRAPH.replace('WEIGHT', numbers))
        facts = dict(classes=CLASSES, threshold=None, preparation=PREPARATION)
        facts |= dict(sure=sure) if sure is not None else {}
        facts = {key: json.dumps(fact) for key, fact in facts.items()}
        onnx.helper.set_model_props(file, facts)
        onnx.save(file, tmp_path / 'small.onnx')
        out = tmp_path / 'results.csv'
        words = 'small.onnx', '.', '--out', out, *words
        monkeypatch.chdir(tmp_path)
        code = exit_code(load_tool(monkeypatch, INFER, *words)['main'])
        rows = [*csv.DictReader(out.open())] if not code else []
        return code, rows, *capsys.readouterr()

    return infer


def read_scores(rows):
    """Return the scores (K,) of each photo."""
    for row in rows:
        scores = {row[f'name_{i}']: row[f'score_{i}'] for i in range(1, 7)}
        yield np.array([float(scores[x]) for x in CLASSES], np.float32)


@pytest.mark.parametrize('among', [None, [0, 2, 5]])
@pytest.mark.parametrize('groups', [None, torch.arange(60) // 2])
def test_infer_onnx_has_the_sets_of_predict(infer, tmp_path, among, groups):
    _, rows, _, _ = infer(None, '--topk', 6)
    calibration = calibrate(groups=groups)
    words = ['--sure', 70]
    restricted = calibration
    if among:
        here = tmp_path / 'here.txt'
        here.write_text('\n'.join(CLASSES[i] for i in among))
        words += ['--among', here]
        restricted = calibration.among(among)
    rule = SetRule(70, restricted.find_threshold(70), COARSE)
    answers = Answers(CLASSES, among, rule)
    code, sure, said, _ = infer(describe_sets(calibration, COARSE), *words)
    assert code == 0
    lines = said.splitlines()
    for row, scores, line in zip(sure, read_scores(rows), lines, strict=False):
        answer = answers.apply(dict(image='', pred_scores=scores))
        assert row['sure_answer'] == answer['sure_answer']
        assert row['sure_set'] == ' | '.join(answer['sure_set'])
        assert f'70%: {answer["sure_answer"]}  ' in line
    assert len({row['sure_set'].count('|') for row in sure}) > 1
    assert any(row['sure_answer'] == 'tree' for row in sure)


def test_infer_onnx_restricts_and_normalizes_scores(infer, tmp_path):
    (tmp_path / 'here.txt').write_text('oak\n\nash\n')
    code, rows, _, _ = infer(None, '--among', 'here.txt')
    assert code == 0 and 'sure_set' not in rows[0]
    for row in rows:
        assert {row['name_1'], row['name_2']} == {'oak', 'ash'}
        assert 'name_3' not in row
        total = float(row['score_1']) + float(row['score_2'])
        assert total == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ('number', 'words', 'problem'),
    [
        (18, ['--sure', '95'], 'at least 19 photos are needed, found 18'),
        (None, ['--sure', '95'], 'export a model folder'),
        (60, ['--sure', '100'], 'invalid choice'),
        (60, ['--among', 'none.txt'], 'none.txt'),
        (60, ['--among', 'unknown.txt'], "no class 'elf'"),
        (60, ['--among', 'single.txt'], 'at least two'),
    ],
)
def test_infer_onnx_refuses_impossible_answers(
    infer, tmp_path, number, words, problem
):
    (tmp_path / 'unknown.txt').write_text('elf\nash\n')
    (tmp_path / 'single.txt').write_text('elm\n')
    sure = number and describe_sets(calibrate(number), {})
    code, _, _, errors = infer(sure, *words)
    assert code == 2 and problem in errors.splitlines()[-1]


def test_infer_onnx_refuses_damaged_probabilities(infer):
    sure = describe_sets(calibrate(), {}) | dict(probabilities='AAAA')
    code, _, _, errors = infer(sure, '--sure', 90)
    assert code == 2 and 'damaged metadata' in errors


def test_stored_calibration_is_a_random_part_if_it_is_large(monkeypatch):
    monkeypatch.setattr(prediction_sets, 'MAX_NUMBERS', 200)
    stored = describe_sets(calibrate(groups=torch.arange(60) // 2), {})
    assert 26 <= len(stored['labels']) <= 33
    groups = np.array(stored['groups'])
    assert (np.bincount(groups)[np.unique(groups)] == 2).all()
