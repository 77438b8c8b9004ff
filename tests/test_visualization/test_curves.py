# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import json

from matplotlib.figure import Figure

from mmclca.visualization import draw_curves, read_scalars

RECORDS = [
    dict(loss=2.0, epoch=1, step=10),
    dict(loss=1.0, epoch=1, step=20),
    {'accuracy/top1': 20.0, 'step': 1},
    dict(loss=0.5, epoch=2, step=30),
    {'accuracy/top1': 80.0, 'step': 2},
]


def test_both_curves_and_chance(tmp_path, monkeypatch):
    path, figures = tmp_path / 'scalars.json', []
    path.write_text('\n'.join(map(json.dumps, RECORDS)))
    assert read_scalars(path) == RECORDS
    save = lambda figure, *_, **__: figures.append(figure)  # noqa: E731
    monkeypatch.setattr(Figure, 'savefig', save)
    draw_curves(RECORDS, tmp_path / 'curves.png', chance=12.5)
    lines = [line for axis in figures[0].axes for line in axis.lines]
    loss, accuracy, chance = (line.get_xydata().tolist() for line in lines)
    assert loss == [[1, 1.5], [2, 0.5]]
    assert accuracy == [[1, 20], [2, 80]]
    assert [y for _, y in chance] == [12.5, 12.5]
