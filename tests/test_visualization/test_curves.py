# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import json

import mmcv

from mmclca.visualization import draw_curves, read_scalars

RECORDS = [
    dict(loss=2.0, epoch=1, step=10),
    dict(loss=1.0, epoch=1, step=20),
    {'accuracy/top1': 20.0, 'step': 1},
    dict(loss=0.5, epoch=2, step=30),
    {'accuracy/top1': 80.0, 'step': 2},
]


def test_records_are_read_line_by_line(tmp_path):
    path = tmp_path / 'scalars.json'
    path.write_text('\n'.join(map(json.dumps, RECORDS)))
    assert read_scalars(path) == RECORDS


def test_both_curves_and_chance_are_drawn(tmp_path, monkeypatch):
    axes = []
    from matplotlib.figure import Figure

    subplots = Figure.subplots
    monkeypatch.setattr(
        Figure, 'subplots', lambda *a: axes.extend(subplots(*a)) or axes
    )
    out = tmp_path / 'curves.png'
    draw_curves(RECORDS, out, chance=12.5)
    assert mmcv.imread(out).std() > 5
    loss, accuracy = axes
    assert loss.lines[0].get_xydata().tolist() == [[1, 1.5], [2, 0.5]]
    assert accuracy.lines[0].get_xydata().tolist() == [[1, 20], [2, 80]]
    assert set(accuracy.lines[1].get_ydata()) == {12.5}
