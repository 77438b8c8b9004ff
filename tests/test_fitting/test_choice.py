# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Choice among several weights by accuracy and cost."""

import json
from dataclasses import replace

import pytest
import timm
import torch
from tiny_photos import write_photos, write_weights

from mmclca.fitting import choice
from mmclca.fitting.budget import BudgetError
from mmclca.fitting.record import FitRecord

NAMES = 'accuracy', 'gmacs', 'ms'
ROWS = dict(weak=(0.5, 0.1, None), good=(0.9, 0.3, 9), same=(0.9, 0.4, 8))


@pytest.mark.parametrize(
    'weights, chosen',
    [(['weak', 'good', 'dear'], 'good'), (['good', 'same', 'weak'], 'same')],
)
def test_choose_plan_prefers_accuracy_then_cost(weights, chosen, monkeypatch):
    """Near-duplicates are joined before all measurements."""
    joined = []

    def join(plan, record):
        joined.append(plan)
        return record

    def make_plan(_, record, *__):
        if record.call['weights'] == 'dear':
            raise BudgetError
        return record.call['weights']

    def measured(source):
        assert len(joined) == 1
        return dict(zip(NAMES, ROWS[source], strict=True), source=source)

    monkeypatch.setattr(choice, 'make_plan', make_plan)
    monkeypatch.setattr(choice, '_measured', measured)
    monkeypatch.setattr(choice, 'join_near_duplicates', join)
    record = FitRecord(call=dict(weights=weights))
    plan, record = choice.choose_plan(None, record, None, None)
    assert plan == chosen
    found = {x['source']: x['accuracy'] for x in record.considered}
    assert found == {x: ROWS.get(x, [None])[0] for x in weights}
    monkeypatch.delattr(choice, '_measured')  # a resumed fit keeps the choice
    record = replace(record, weights=dict(source='weak'))
    assert choice.choose_plan(None, record, None, None)[0] == 'weak'


@pytest.mark.slow
def test_several_weights_are_compared_and_noted(tmp_path, run, capsys):
    convnext, tiny = tmp_path / 'test_convnext.pth', write_weights(tmp_path)
    torch.save(timm.create_model('test_convnext').state_dict(), convnext)
    photos, out = write_photos(tmp_path), tmp_path / 'model'
    words = [photos, '--out', out, '--probe-only', '--budget', '0.1GMACs']
    words += ['--weights', convnext, '--weights', tiny]
    for _ in range(2):  # the second one resumes
        assert run('fit', *words, '--runtime', 'pytorch') == 0
        rows = json.loads((out / 'fit.json').read_text())['considered']
        assert [x['source'] for x in rows] == [str(convnext), str(tiny)]
        assert all(x['accuracy'] > 0 and x['gmacs'] < 0.1 for x in rows)
        assert capsys.readouterr().out.count('Backbone ') == 2
    assert tiny.name in (out / 'report.html').read_text()
