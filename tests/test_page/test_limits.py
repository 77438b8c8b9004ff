# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Uploads of all kinds: read as training does, or refused in plain words."""

import pytest
from PIL import Image

from mmclca.page import read_leaf


def save(path, image, **options):
    image.save(path, **options)
    return path


def refused(path):
    with pytest.raises(ValueError) as error:
        read_leaf(path)
    return str(error.value)


def test_text_with_the_name_of_a_picture(tmp_path):
    path = tmp_path / 'leaf.png'
    path.write_text('no picture')
    said = refused(path)
    assert 'cannot be read (no image' in said
    assert 'JPEG, PNG, TIFF' in said and 'at most 200 million' in said


def test_empty_file(tmp_path):
    (tmp_path / 'leaf.png').touch()
    assert 'cannot be read (empty file)' in refused(tmp_path / 'leaf.png')


def test_heic_is_named(tmp_path):
    path = tmp_path / 'IMG_0001.jpg'
    path.write_bytes(b'\0\0\0\x18ftypheic' + bytes(100))
    said = refused(path)
    assert 'HEIC' in said or 'heif' in said.lower()
    assert 'as a JPEG' in said


@pytest.mark.parametrize('ending', ['gif', 'pdf', 'ico'])
def test_formats_that_training_does_not_read(ending, tmp_path):
    path = save(tmp_path / f'leaf.{ending}', Image.new('RGB', (40, 20)))
    assert 'no image' in refused(path)


@pytest.mark.parametrize(
    'size, words', [((15, 300), 'too few'), ((16, 481), 'too long a strip')]
)
def test_shapes_that_show_nothing(size, words, tmp_path):
    path = save(tmp_path / 'leaf.png', Image.new('RGB', size))
    assert words in refused(path)
    assert f'{size[0]} x {size[1]} pixels' in refused(path)


def test_longest_strip_that_is_read(tmp_path):
    path = save(tmp_path / 'leaf.png', Image.new('RGB', (16, 480)))
    assert read_leaf(path).shape == (480, 16, 3)
