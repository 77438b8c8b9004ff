# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import numpy as np
import pytest
from PIL import Image

from mmclca.visualization import contact_sheet

RED, BLUE = (250, 10, 10), (10, 10, 250)


@pytest.fixture
def squares(tmp_path):
    """Paths of a red and of a blue image, one wide and one high."""
    paths = []
    for name, colour, size in (('r', RED, (60, 30)), ('b', BLUE, (30, 60))):
        paths.append(tmp_path / f'{name}.png')
        Image.new('RGB', size, colour).save(paths[-1])
    return paths


def draw(groups, tmp_path, **options):
    out = tmp_path / 'sheet.png'
    contact_sheet(groups, out, **options)
    return np.asarray(Image.open(out).convert('RGB'))


def share(sheet, colour):
    return (np.abs(sheet.astype(int) - colour).max(-1) < 20).mean()


def test_a_column_a_class(squares, tmp_path):
    red, blue = squares
    sheet = draw({'a': [red] * 3, 'b': [blue]}, tmp_path, thumb=60, gap=4)
    half = sheet.shape[1] // 2
    left, right = sheet[:, :half], sheet[:, half:]
    assert share(left, RED) == pytest.approx(3 * 60 * 30 / left[..., 0].size)
    assert share(right, BLUE) == pytest.approx(60 * 30 / right[..., 0].size)
    assert share(left, BLUE) == share(right, RED) == 0


def test_bands_of_classes(squares, tmp_path):
    groups = {str(n): squares for n in range(5)}
    one = draw(groups, tmp_path, thumb=40, columns=5)
    three = draw(groups, tmp_path, thumb=40, columns=2)
    assert three.shape[0] == 3 * one.shape[0]
    assert three.shape[1] < one.shape[1]
    assert share(three, RED) * three.size == share(one, RED) * one.size


def test_names_stay_above_their_column(squares, tmp_path):
    short = draw({'ab': squares[:1], 'c': squares[1:]}, tmp_path)
    long = {'a name much longer than its column': squares[:1]}
    named = draw(long | {'c': squares[1:]}, tmp_path)
    heading = slice(0, 28)
    assert (short[heading] < 128).any() and (named[heading] < 128).any()
    half = slice(short.shape[1] // 2, None)
    assert np.array_equal(named[heading, half], short[heading, half])


def test_captions_below_images(squares, tmp_path):
    groups = {'a': squares, 'b': squares[:1]}
    plain = draw(groups, tmp_path, thumb=60, gap=4)
    captions = {'a': ['first', ''], 'b': ['']}
    named = draw(groups, tmp_path, thumb=60, gap=4, captions=captions)
    line = 60 // 6 + 4
    assert named.shape[0] == plain.shape[0] + 2 * line
    below = 4 + line + 64  # the margin, a line, an image and a gap
    left, right = named[below : below + line, :66], named[below:, 68:]
    assert (left < 128).any() and (right == 255).all()


@pytest.mark.parametrize('groups', [{}, {'a': [], 'b': []}])
def test_nothing_to_draw(groups, tmp_path):
    with pytest.raises(ValueError, match='no image to draw'):
        contact_sheet(groups, tmp_path / 'sheet.png')
