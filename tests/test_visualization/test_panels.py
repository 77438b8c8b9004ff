# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import numpy as np
import pytest

from mmclca.visualization.panels import draw_panels

COLOURS = [(200, 30, 60), (30, 60, 200), (60, 200, 30)]


def plain(colour, height=20, width=40):
    return np.full((height, width, 3), colour, np.uint8)


def area(picture, colour):
    return (picture == colour).all(2).nonzero()


def test_side_by_side_at_the_height_asked_for():
    panels = [(f'{c}', plain(c)) for c in COLOURS]
    picture = draw_panels(panels, 'three', height=200)
    assert picture.dtype == np.uint8 and picture.shape[2] == 3
    lefts = []
    for colour in COLOURS:
        rows, columns = area(picture, colour)
        assert np.ptp(rows) == pytest.approx(200, rel=0.1)
        assert np.ptp(columns) == pytest.approx(400, rel=0.1)
        lefts.append(columns.min())
    assert lefts == sorted(lefts) and lefts[1] - lefts[0] >= 400 * 0.9


def test_rows_of_five():
    panels = [(str(i), plain(COLOURS[i % 3])) for i in range(6)]
    picture = draw_panels(panels, 'six', height=100)
    rows, _ = area(picture, COLOURS[2])  # the third and the sixth
    middle = picture.shape[0] // 2
    assert rows.min() < middle < rows.max()
    wider = draw_panels(panels[:5], 'five', height=100)
    assert wider.shape[1] == picture.shape[1]


def test_long_lines_stay_in_the_picture():
    def margins(heading):
        picture = draw_panels([('a', plain((255,) * 3))], heading, height=100)
        dark = (picture[:60] < 100).all(2).any(0)
        return dark[:3].any() or dark[-3:].any()

    assert not margins('a very long name of a cultivar of a species ' * 2)
    assert not margins('without_any_space_at_all_in_the_name_' * 2)


def test_fractions_and_grey_images():
    grey = np.full((20, 20), 77, np.uint8)
    rows, _ = area(draw_panels([('a', grey)], 'b'), (77, 77, 77))
    assert np.ptp(rows) > 250
    floats = plain(COLOURS[0]).astype(np.float32) + 0.4
    rows, _ = area(draw_panels([('a', floats)], 'b'), COLOURS[0])
    assert np.ptp(rows) > 250
