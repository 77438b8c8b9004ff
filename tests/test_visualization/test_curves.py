# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import json
import re
from xml.etree import ElementTree

import pytest

from mmclca.visualization import draw_curves, read_scalars

SVG = '{http://www.w3.org/2000/svg}'
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


def line(picture, colour):
    """Points of a line of an SVG, as fractions of its axes from below."""
    root = ElementTree.parse(picture).getroot()
    (path,) = (
        path
        for path in root.iter(f'{SVG}path')
        if 'clip-path' in path.attrib and colour in path.get('style')
    )
    clip = path.get('clip-path').removeprefix('url(#').removesuffix(')')
    (frame,) = root.find(f".//{SVG}clipPath[@id='{clip}']")
    x, y, width, height = (
        float(frame.get(name)) for name in ('x', 'y', 'width', 'height')
    )
    points = re.findall(r'[ML] (\S+) (\S+)', path.get('d'))
    return [
        ((float(px) - x) / width, (y + height - float(py)) / height)
        for px, py in points
    ]


def test_both_curves_and_chance_are_drawn(tmp_path):
    out = tmp_path / 'curves.svg'
    draw_curves(RECORDS, out, chance=12.5)
    (x1, first), (x2, second) = line(out, '#1b6ca8')
    assert 0 < x1 < x2 < 1
    assert first / second == pytest.approx(3, abs=1e-3)  # means 1.5 and 0.5
    (x1, first), (x2, second) = line(out, '#2a7f3f')
    assert 0 < x1 < x2 < 1
    assert (first, second) == pytest.approx((0.2, 0.8), abs=1e-4)
    (x1, first), (x2, second) = line(out, '#808080')
    assert (x1, x2) == pytest.approx((0, 1), abs=1e-4)
    assert first == second == pytest.approx(0.125, abs=1e-4)
