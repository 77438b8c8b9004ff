# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import mmcv
import numpy as np
import torch

from mmclca.visualization import Heated, draw_heat_maps, paint_map

GREY = np.full((12, 12, 3), 100, np.uint8)


def test_brighter_where_there_is_more():
    one = torch.tensor([[0.0, 1.0], [2.0, 4.0]])
    drawn = paint_map(GREY, one).astype(int).sum(axis=2)
    values = [drawn[3, 3], drawn[3, 9], drawn[9, 3], drawn[9, 9]]
    assert values == sorted(values) and len(set(values)) == 4
    assert np.array_equal(paint_map(GREY, one), paint_map(GREY, 3 * one))
    assert (drawn[:6, :6] == values[0]).all()


def test_map_of_nothing_is_dark():
    drawn = paint_map(GREY, torch.zeros(2, 2))
    assert (drawn == drawn[0, 0]).all() and drawn.max() < 30


def test_image_shows_through():
    image = GREY.copy()
    image[2, 2] = 200
    drawn = paint_map(image, torch.ones(2, 2)).astype(int)
    assert (drawn[2, 2] > drawn[3, 3]).all()


def test_a_row_an_image_and_a_column_a_map(tmp_path):
    maps = {name: torch.rand(2, 2) for name in 'ab'}
    rows = [Heated(title, GREY, maps) for title in 'xyz']
    draw_heat_maps(rows, tmp_path / 'three.png', 'how much')
    draw_heat_maps(rows[:1], tmp_path / 'one.png', 'how much')
    three, one = (
        mmcv.imread(tmp_path / f'{name}.png') for name in ('three', 'one')
    )
    assert abs(three.shape[1] - one.shape[1]) < 0.03 * one.shape[1]
    assert 1.8 < three.shape[0] / one.shape[0] < 3
    height, width = three.shape[:2]
    image = (three == 100).all(-1)
    assert image[:, : width // 3].mean() > 0.6
    assert image[:, width // 3 + 10 :].mean() < 0.01
