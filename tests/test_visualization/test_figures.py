# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import matplotlib.image
import numpy as np
import pytest

from mmclca.visualization.figures import (
    FRAMES,
    Panel,
    contact_sheet,
    picture_grid,
    side_by_side,
    to_array,
)

RED, BLUE = (200, 30, 60), (30, 60, 200)


def plain(colour, height=20, width=40):
    return np.full((height, width, 3), colour, np.uint8)


def sides(picture, colour):
    """Height and width of the region in a color."""
    rows, columns = (picture == colour).all(2).nonzero()
    return np.ptp(rows) + 1, np.ptp(columns) + 1


def test_picture_grid_leaves_gaps_empty():
    first = [Panel(plain(RED), 'one\ntwo', 'below'), None]
    last = [Panel(plain(RED)), Panel(plain(BLUE), frame=FRAMES[True])]
    figure, axes = picture_grid([first, last], ['a', 'b'], heading='all')
    shown = [
        (len(axis.images), axis.get_title(), axis.get_xlabel())
        for axis in axes
    ]
    empty, bare = (0, '', ''), (1, '', '')
    assert shown == [(1, 'one\ntwo', 'below'), empty, bare, bare]
    assert [axis.get_ylabel() for axis in axes] == ['a', '', 'b', '']
    assert figure.get_suptitle() == 'all'
    picture = to_array(figure)
    assert (picture == (0, 114, 178)).all(2).any()


def test_side_by_side_scales_five_images_per_row():
    names = 'a very long name of a step ' * 4
    images = [(names, plain(RED)), ('b', plain(BLUE) + 0.4)] * 3
    picture = side_by_side(images, names, 0.5)
    red = (picture == RED).all(2).sum()
    assert red == pytest.approx(3 * 160 * 320, rel=0.1)
    assert sides(picture, BLUE)[0] > 300 > sides(picture, RED)[0]


def test_contact_sheet_has_a_column_per_class(tmp_path):
    groups = {
        'a': [Panel(plain(RED)), Panel(plain(RED))],
        'b': [Panel(plain(BLUE))],
        'c': [],
        'd': [Panel(plain(BLUE))],
    }
    contact_sheet(groups, tmp_path / 'sheet.png', columns=3)
    picture = 255 * matplotlib.image.imread(tmp_path / 'sheet.png')[..., :3]
    half = picture.shape[1] // 3
    left, right = picture[:, :half].round(), picture[:, half:].round()
    assert (left == RED).all(2).any() and not (right == RED).all(2).any()
    assert (left == BLUE).all(2).any() and (right == BLUE).all(2).any()
