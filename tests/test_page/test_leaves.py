# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Uploads are read as training does, or refused in plain words."""

import pytest
from PIL import Image

from mmclca.page import read_photo

HEIC = b'\0\0\0\x18ftypheic' + bytes(100)


@pytest.mark.parametrize(
    'name, made, words',
    [
        ('leaf.png', b'no picture', ('not an image', '200 million')),
        ('leaf.png', b'', ('cannot be read (empty file)',)),
        ('IMG_0001.jpg', HEIC, ('cannot be read', 'as JPEG')),
        ('leaf.png', b'8BPS', ('PSD', 'JPEG')),
        ('leaf.png', (15, 300), ('15 x 300 pixels', '16 pixels')),
        ('leaf.png', (16, 481), ('16 x 481 pixels', '30 times')),
    ],
)
def test_what_is_refused(name, made, words, tmp_path):
    path = tmp_path / name
    if isinstance(made, bytes):
        path.write_bytes(made)
    else:
        Image.new('RGB', made).save(path)
    with pytest.raises(ValueError) as error:
        read_photo(path)
    assert all(word in str(error.value) for word in words)


def test_longest_strip_that_is_read(tmp_path):
    Image.new('RGB', (16, 480)).save(tmp_path / 'leaf.png')
    assert read_photo(tmp_path / 'leaf.png').shape == (480, 16, 3)
