# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Uploads of all kinds: read as training does, or refused in plain words."""

import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from mmclca.page import Limits, read_leaf

SMALL = Limits(megabytes=1, megapixels=1)


def save(path, image, **options):
    image.save(path, **options)
    return path


@pytest.fixture
def leaf():
    """Red left of the middle, blue right of it, 40 x 20 px."""
    pixels = np.zeros((20, 40, 3), np.uint8)
    pixels[:, :20, 0] = pixels[:, 20:, 2] = 250
    return Image.fromarray(pixels)


def refused(path, limits=SMALL):
    with pytest.raises(ValueError) as error:
        read_leaf(path, limits)
    return str(error.value)


@pytest.mark.parametrize('ending', ['png', 'bmp', 'tif', 'webp', 'ppm'])
def test_formats(leaf, ending, tmp_path):
    options = dict(lossless=True) if ending == 'webp' else {}
    path = save(tmp_path / f'leaf.{ending}', leaf, **options)
    image = read_leaf(path)
    assert (image.shape, image.dtype) == ((20, 40, 3), np.uint8)
    assert image[10, 5].tolist() == [0, 0, 250]  # BGR
    assert image[10, 35].tolist() == [250, 0, 0]


@pytest.mark.parametrize('mode', ['L', 'LA', 'P', 'RGBA', '1', 'I;16'])
def test_modes_of_png(leaf, mode, tmp_path):
    if mode == 'I;16':
        wide = np.asarray(leaf.convert('L')).astype(np.uint16) * 256
        image = Image.fromarray(wide)
    else:
        image = leaf.convert(mode)
    read = read_leaf(save(tmp_path / 'leaf.png', image))
    assert (read.shape, read.dtype) == ((20, 40, 3), np.uint8)
    if mode in ('L', 'LA', 'I;16'):
        assert np.ptp(read, axis=2).max() == 0
        assert read[10, 5, 0] > read[10, 35, 0]  # red is brighter than blue


def test_cmyk_jpeg(leaf, tmp_path):
    path = save(tmp_path / 'l.jpg', leaf.convert('CMYK'), quality=95)
    assert np.abs(read_leaf(path)[10, 5] - np.int64([0, 0, 250])).max() < 30


def test_a_picture_that_the_camera_has_turned_is_turned_back(leaf, tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned clockwise
    path = save(tmp_path / 'leaf.jpg', leaf, exif=exif, quality=95)
    image = read_leaf(path)
    assert image.shape == (40, 20, 3)
    assert image[5, 10, 2] > 200  # what was left is at the top
    assert image[35, 10, 0] > 200


def test_text_with_the_name_of_a_picture(tmp_path):
    path = tmp_path / 'leaf.png'
    path.write_text('no picture')
    said = refused(path)
    assert 'no picture that can be read' in said
    assert 'JPEG, PNG, TIFF' in said


def test_empty_file(tmp_path):
    (tmp_path / 'leaf.png').touch()
    assert 'is empty' in refused(tmp_path / 'leaf.png')


def test_heic_is_named(tmp_path):
    path = tmp_path / 'IMG_0001.jpg'
    path.write_bytes(b'\0\0\0\x18ftypheic' + bytes(100))
    assert 'HEIC' in refused(path)
    assert 'as a JPEG' in refused(path)


@pytest.mark.parametrize('ending', ['gif', 'pdf', 'ico'])
def test_formats_that_training_does_not_read(leaf, ending, tmp_path):
    path = save(tmp_path / f'leaf.{ending}', leaf)
    assert 'no picture that can be read' in refused(path)


@pytest.mark.parametrize('ending', ['jpg', 'png', 'tif'])
def test_cut_short(ending, tmp_path):
    noise = np.random.default_rng(0).integers(0, 255, (90, 90, 3), np.uint8)
    path = save(tmp_path / f'leaf.{ending}', Image.fromarray(noise))
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    said = refused(path)
    assert 'damaged' in said or 'no picture' in said
    assert 'copy it again' in said or 'choose' in said


def test_file_too_large(tmp_path):
    path = tmp_path / 'leaf.png'
    path.write_bytes(bytes(3 * 2**20))
    said = refused(path)
    assert 'has 3 MB, and at most 1 MB' in said


def huge_png(width, height):
    """A small file that says it is huge, as decompression bombs do."""

    def chunk(name, content):
        body = name + content
        crc = struct.pack('>I', zlib.crc32(body))
        return struct.pack('>I', len(content)) + body + crc

    header = struct.pack('>IIBBBBB', width, height, 8, 2, 0, 0, 0)
    data = zlib.compress(bytes(3 * width + 1))
    parts = [(b'IHDR', header), (b'IDAT', data), (b'IEND', b'')]
    return b'\x89PNG\r\n\x1a\n' + b''.join(chunk(*part) for part in parts)


@pytest.mark.filterwarnings('ignore::PIL.Image.DecompressionBombWarning')
@pytest.mark.parametrize('side', [1001, 9000, 10000, 60000])
def test_too_many_pixels_are_never_decoded(side, tmp_path, monkeypatch):
    path = tmp_path / 'leaf.png'
    path.write_bytes(huge_png(side, side))
    monkeypatch.setattr('mmclca.page.limits.read_image', None)
    # Pillow's own limit, which a tool for huge scans takes away
    monkeypatch.setattr(Image, 'MAX_IMAGE_PIXELS', 89478485)
    said = refused(path)
    assert 'at most 1 million' in said
    assert (f'{side} x {side}' in said) == (side < 13000)


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


def test_defaults_read_a_scan_and_refuse_more(tmp_path, monkeypatch):
    monkeypatch.setattr('mmclca.page.limits.read_image', lambda path: 'read')
    path = tmp_path / 'scan.png'
    path.write_bytes(huge_png(7100, 7000))  # 49.7 million
    assert read_leaf(path) == 'read'
    path.write_bytes(huge_png(7200, 7000))
    assert '7200 x 7000' in refused(path, Limits())
