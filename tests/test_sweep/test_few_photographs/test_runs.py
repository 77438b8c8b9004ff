# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Results of both kinds of arms in one table."""

import json

from few_photographs_runs import BACKBONE, probe_result, trained_results

from mmclca.benchmark.few_photographs.arms import OUR_PROBE, Frozen, ProbeArm
from mmclca.sweep.few_photographs.runs import (
    CLCA,
    OURS_SMALLER,
    is_trained_arm,
    read_probes,
    to_runs,
    trained_model,
)

EVIT = ProbeArm(OUR_PROBE, Frozen(BACKBONE, 'EViT', 0.25))


def test_a_row_a_draw_of_a_probe_arm():
    runs = to_runs([probe_result(EVIT, [90.0, 92.0], 0.47)], [])
    assert runs.draw.tolist() == [0, 1]
    assert runs.accuracy.tolist() == [90.0, 92.0]
    assert runs.macro_recall.tolist() == [89.0, 91.0]
    row = next(runs.itertuples())
    assert (row.line, row.method, row.keep_rate) == (OUR_PROBE, 'EViT', 0.25)
    assert (row.pixels, row.depth, row.embedded) == (224, 9, 120)
    assert row.model == 'evit-kr25_224px_average-0-8'


def test_a_row_a_result_of_a_trained_arm():
    results = trained_results('paper', 'clca', [80.0, 82.0], 0.5, 0.25)
    assert all(map(is_trained_arm, results))
    runs = to_runs([], results)
    assert runs.draw.tolist() == [0, 1]
    assert runs.macro_recall.tolist() == [78.0, 80.0]
    row = next(runs.itertuples())
    assert (row.dataset, row.line) == ('leaf40_white', CLCA)
    assert (row.method, row.embedded, row.seconds) == ('EViT', 0, 100.0)
    name = trained_model(results[0]['cell'])
    assert row.model == name == 'paper_clca_deit-tiny-p16_evit-kr25_224px'


def test_what_arms_are_called():
    smaller = trained_results('small', 'base', [90.0], 0.4, 1.0, size=144)
    row = next(to_runs([], smaller).itertuples())
    assert (row.line, row.method) == (OURS_SMALLER, '')
    other = trained_results('ours-mixup', 'base', [90.0], 0.4, 0.5)
    assert to_runs([], other).line.item() == 'ours-mixup'
    other[0]['cell']['variant'] = 'by-layer'
    assert not is_trained_arm(other[0])


def test_macro_recall_that_is_not_told():
    (result,) = trained_results('paper', 'cla', [80.0], 0.5, 0.25)
    result['metrics'] = {}
    assert to_runs([], [result]).macro_recall.isna().all()


def test_unfinished_files_are_not_read(tmp_path):
    result = probe_result(EVIT, [90.0], 0.47)
    (tmp_path / 'one.json').write_text(json.dumps(result))
    (tmp_path / '.two.json').write_text('{"arm"')
    assert read_probes(tmp_path) == [json.loads(json.dumps(result))]
