# Copyright (c) mmclca contributors. Licensed under Apache-2.0.

import numpy as np
import pytest
from PIL import Image
from tiny_model import write_tiny

from mmclca.apis import (
    TokenReductionInferencer,
    draw_prediction,
    picture_paths,
)


def test_pictures_follow_the_images_and_replace_none(tmp_path):
    images = [str(tmp_path / x) for x in ('a/x.jpg', 'a/x.png', 'b/x.jpg')]
    out = tmp_path / 'out'
    expected = [out / f'{x}.png' for x in ('a/x.jpg', 'a/x.png', 'b/x.jpg')]
    assert picture_paths(images, out) == expected
    assert picture_paths(images[:1], out) == [out / 'x.jpg.png']
    with pytest.raises(ValueError, match='might replace'):
        picture_paths(images, tmp_path)


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
