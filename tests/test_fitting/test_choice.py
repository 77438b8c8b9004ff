# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Choice among several weights by accuracy and cost."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
import timm
import torch
from tiny_photos import write_photos, write_weights

from mmclca.fitting import choice
from mmclca.fitting.budget import BudgetError
from mmclca.fitting.cost_parts import ComparedWeights
from mmclca.fitting.options import FitOptions
from mmclca.fitting.record import FitRecord
from mmclca.fitting.record_parts import Weights

COSTLY = 'dear'
FIGURES = dict(
    weak=dict(accuracy=0.5, gmacs=0.1),
    good=dict(accuracy=0.9, gmacs=0.3, ms=9.0),
    same=dict(accuracy=0.9, gmacs=0.4, ms=8.0),
)


class FakePlan(SimpleNamespace):
    def with_groups(self, checked):
        return FakePlan(source=self.source, checked=checked)


@pytest.mark.parametrize(
    'weights, chosen',
    [(['weak', 'good', 'dear'], 'good'), (['good', 'same', 'weak'], 'same')],
)
def test_choose_plan_prefers_accuracy_then_cost(weights, chosen, monkeypatch):
    """Near-duplicates are joined before all measurements."""

    def join(plan, record):
        return plan.with_groups('joined'), record

    def make_plan(files, record, checked, options):
        if options.weights == COSTLY:
            raise BudgetError
        return FakePlan(source=options.weights, checked=checked)

    def measure(plan):
        assert plan.checked == 'joined'
        return ComparedWeights(plan.source, **FIGURES[plan.source])

    monkeypatch.setattr(choice, 'make_plan', make_plan)
    monkeypatch.setattr(choice, 'measure_backbone', measure)
    monkeypatch.setattr(choice, 'join_near_duplicates', join)
    options = FitOptions(weights=weights)
    plan, record = choice.choose_plan(None, FitRecord(), None, options)
    assert plan.source == chosen
    accuracies = {x.source: x.accuracy for x in record.considered}
    assert accuracies == {
        x: FIGURES.get(x, dict(accuracy=None))['accuracy'] for x in weights
    }
    monkeypatch.delattr(choice, 'measure_backbone')  # resumed: keep the choice
    record = replace(record, weights=Weights('weak', 'weak'))
    plan, _ = choice.choose_plan(None, record, None, options)
    assert plan.source == 'weak'


@pytest.mark.slow
def test_several_weights_are_compared_and_noted(tmp_path, run, capsys):
    convnext, tiny = tmp_path / 'test_convnext.pth', write_weights(tmp_path)
    torch.save(timm.create_model('test_convnext').state_dict(), convnext)
    photos, out = write_photos(tmp_path), tmp_path / 'model'
    words = [photos, '--out', out, '--probe-only', '--budget', '0.1GMACs']
    words += ['--weights', convnext, '--weights', tiny, '--verbose']
    for _ in range(2):  # the second one resumes
        assert run('fit', *words, '--runtime', 'pytorch') == 0
        rows = json.loads((out / 'fit.json').read_text())['considered']
        assert [x['source'] for x in rows] == [str(convnext), str(tiny)]
        assert all(x['accuracy'] > 0 and x['gmacs'] < 0.1 for x in rows)
        assert capsys.readouterr().out.count('Backbone ') == 2
    assert tiny.name in (out / 'report.html').read_text()
