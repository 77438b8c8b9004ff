# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tiny_model import write_tiny

from mmclca.apis import (
    TokenReductionInferencer,
    draw_prediction,
    picture_paths,
)


def test_paths_follow_those_of_the_images(tmp_path):
    images = [tmp_path / name for name in ('a/x.jpg', 'a/y.tif', 'b/x.jpg')]
    out = tmp_path / 'out'
    expected = [out / name for name in ('a/x.png', 'a/y.png', 'b/x.png')]
    assert picture_paths([*map(str, images)], out) == expected
    assert picture_paths([str(images[0])], out) == [out / 'x.png']
    alike = ['leaves/x.jpg', 'leaves/x.tif', 'leaves/y.jpg']
    names = ['x.jpg.png', 'x.tif.png', 'y.png']
    assert picture_paths(alike, 'out') == [Path('out', n) for n in names]


def test_no_picture_replaces_an_image(tmp_path):
    images = [str(tmp_path / name) for name in ('a/x.png', 'y.jpg')]
    with pytest.raises(ValueError, match='among images, .* replace one'):
        picture_paths(images, tmp_path)
    # one beside it that is not among the images would be replaced, too
    with pytest.raises(ValueError, match='give another folder'):
        picture_paths(images[1:], tmp_path)
    assert picture_paths(images, tmp_path / 'p')[1] == tmp_path / 'p/y.png'


def test_wider_with_each_stage_and_of_arrays_too(tmp_path):
    widths = []
    for reduce_at in ((1,), (0, 1, 2)):
        folder = tmp_path / str(len(reduce_at))
        folder.mkdir()
        model = write_tiny(folder, reduce_at=reduce_at)
        inferencer = TokenReductionInferencer(model)
        image = np.full((50, 40, 3), (0, 60, 200), np.uint8)  # BGR
        (result,) = inferencer(image)
        draw_prediction(inferencer, image, result, folder / 'new/one.png')
        picture = Image.open(folder / 'new/one.png').convert('RGB')
        widths.append(picture.width)
        seen = (np.asarray(picture) == (200, 60, 0)).all(-1).mean()
        assert seen > 0.15  # in its colours, as RGB
    assert widths[1] > 1.6 * widths[0]
