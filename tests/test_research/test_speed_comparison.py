# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import csv
import json
from dataclasses import replace

import pytest
import torch
from mmcv import imread
from speed import comparison
from speed.candidates import Size, mmpretrain_vit, timm_vit, vary
from speed.comparison import Result, compare
from speed.pages import (
    draw_speed_up,
    exponent_lines,
    exponents,
    table_line,
    write_comparison,
)

from mmclca.benchmark import Setting
from mmclca.benchmark.steps import describe_machine
from mmclca.evaluation.cost import Cost
from mmclca.models import Variant

TINY = Size('tiny', (64, 64), 32, 4, 2, 64)
VIT = mmpretrain_vit(TINY)
EVIT = [
    vary(VIT, Variant('EViT', 0.5, cache=clca, cla=clca))
    for clca in (False, True)
]
MIB = 2**20


def pair():
    """Results of timm's baseline and of a reduced model."""
    plain = Cost((64, 64), flops=6 * 10**9, tokens=[17] * 4)
    fewer = Cost((64, 64), 2 * 10**9, tokens=[17, 10, 7, 5], distances=10**9)
    timm = Result(timm_vit(TINY), plain, [2.0, 4.0, 9.0], 4, 8 * MIB)
    one = Result(EVIT[1], fewer, [1.0, 4.0, 3.0], 4, 2 * MIB, timm)
    return timm, one


def test_speed_up_is_the_quartiles_over_rounds():
    timm, one = pair()
    assert one.speed_up.tolist() == [1.5, 2, 2.5]  # ratios 1, 2 and 3
    record = one.record()
    assert record['images_per_second'] == 4 / 3
    assert (record['gmacs_ratio'], record['efficiency']) == (3, 2 / 3)
    assert record['memory_ratio'] == 0.25
    assert timm.speed_up.tolist() == [1, 1, 1]
    assert (timm.gmacs_ratio, timm.record()['memory_ratio']) == (1, 1)
    one.memory = timm.memory = None
    assert one.record()['memory_mib'] is one.record()['memory_ratio'] is None


def test_written_files_contain_the_same_results(tmp_path):
    timm, one = pair()
    assert table_line(one) == (
        '| tiny | EViT | 0.5 | yes | 64 | 10/7/5/5 | 2.00 | 1.00 | 4 | 1.333 '
        '| 2.00 | 1.50-2.50 | 3.00 | 0.67 | 2 | 0.25 |'
    )
    assert table_line(timm).endswith('| 1.00 | 1.00 | 8 | 1.00 |')
    records = [timm.record(), one.record()]
    setting = Setting(train=True)
    facts = describe_machine(setting, 'python x.py')
    assert {'CPU', 'cores', 'load', 'versions', 'date'} < set(facts)
    assert 'GPU' not in facts
    given = 'Title', setting, [8], facts, [timm, one], []
    write_comparison(tmp_path / 'a.b', *given)
    text = (tmp_path / 'a.b.md').read_text()
    assert text.startswith('# Title\n\nTraining step, batch 8, float32')
    assert '- command: `python x.py`\n' in text
    with open(tmp_path / 'a.b.csv') as file:
        rows = list(csv.DictReader(file))
    assert [row['method'] for row in rows] == ['timm', 'EViT']
    assert float(rows[1]['speed_up']) == 2
    assert (rows[0]['keep_rate'], rows[1]['memory_mib']) == ('', '2.0')
    assert 'seconds' not in rows[0]
    content = json.loads((tmp_path / 'a.b.json').read_text())
    assert content['results'] == records
    assert (content['machine'], content['batches']) == (facts, [8])
    assert content['setting']['batch'] == 8


def compared(models):
    """Results, and names of models out of memory."""
    missing = []
    plan = {timm_vit(TINY): models}
    found = [*compare(plan, Setting(batch=1), 2, 1, False, missing)]
    return found, [name.removesuffix(' (tiny, 64 px)') for name in missing]


def run_out(*labels):
    """Make a ``make_step`` with passes out of memory for some models."""

    def make_step(candidate, setting):
        def step():
            if candidate.label in labels:
                raise torch.OutOfMemoryError

        return step

    return make_step


def labels_of(models):
    return [one.label for one in models]


def test_each_group_is_timed_with_its_baseline(monkeypatch):
    groups = []
    monkeypatch.setattr(comparison, 'AT_ONCE', 1)

    def interleaved_seconds(steps, setting, rounds, warm_up):
        groups.append(labels_of(steps))
        return {one: [float(len(groups))] * rounds for one in steps}

    monkeypatch.setattr(comparison, 'interleaved_seconds', interleaved_seconds)
    found, _ = compared(EVIT)
    assert groups == [['timm', 'EViT 0.5'], ['timm', 'EViT 0.5 + CLCA']]
    names = labels_of(one.candidate for one in found)
    assert names == ['timm', 'EViT 0.5', 'EViT 0.5 + CLCA']
    # each result refers to the baseline in its own rounds
    assert [one.baseline.seconds[0] for one in found[1:]] == [1, 2]


def test_models_out_of_memory_are_skipped(monkeypatch):
    """A group without its baseline is skipped as well."""
    monkeypatch.setattr(comparison, 'AT_ONCE', 1)
    monkeypatch.setattr(comparison, 'make_step', run_out('EViT 0.5'))
    found, missing = compared(EVIT)
    names = labels_of(one.candidate for one in found)
    assert (names, missing) == (['timm', 'EViT 0.5 + CLCA'], ['EViT 0.5'])
    monkeypatch.setattr(comparison, 'make_step', run_out('timm'))
    found, missing = compared(EVIT)
    assert found == []
    assert set(missing) == {'timm', 'EViT 0.5', 'EViT 0.5 + CLCA'}


def grown(model, side, seconds, memory):
    """Result at an image size, with 1 MiB weights and GMACs ~ pixels."""
    size = replace(model.size, img_size=(side, side))
    cost = Cost((side, side), flops=side**2, tokens=[], params=2**18)
    memory = memory and memory + MIB
    return Result(replace(model, size=size), cost, [seconds], 4, memory)


def test_exponents_are_fitted_if_there_are_several_sizes():
    """Memory excludes the weights."""
    results = [grown(EVIT[0], s, 3 * s**4, s**3) for s in (32, 64, 128)]
    results.append(grown(EVIT[1], 64, 1, 1))
    (fitted,) = exponents(results)
    assert fitted.pop('method') == 'EViT 0.5'
    assert fitted == dict(
        model='tiny',
        batch=4,
        GMACs=pytest.approx(1),
        seconds=pytest.approx(2),
        memory=pytest.approx(1.5),
    )
    assert exponents(pair()) == exponent_lines([]) == []
    (other,) = exponents([grown(VIT, s, s, None) for s in (32, 64)])
    row = exponent_lines([other])[-1]
    assert row == '| tiny | mmpretrain | 4 | 1.00 | 0.50 |'


def test_speed_up_is_drawn_for_several_batches(tmp_path):
    timm, one = pair()
    more = [one, replace(one, batch=8)]
    draw_speed_up([timm, *more], tmp_path / 'plot.png')
    picture = imread(str(tmp_path / 'plot.png'))
    assert min(picture.shape[:2]) > 300
    assert picture.std() > 5
