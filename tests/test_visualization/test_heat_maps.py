# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import numpy as np
import torch

from mmclca.visualization import paint_map

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
