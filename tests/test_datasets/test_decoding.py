# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import time
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import cv2
import mmcv
import numpy as np
import pytest
from mmengine.dataset import Compose
from PIL import Image, TiffImagePlugin

from mmclca.datasets import decoding
from mmclca.datasets.batches import read_image
from mmclca.datasets.decoding import UndecodedError, decode
from mmclca.datasets.image_files import check_headers, find_problem
from mmclca.datasets.photographs.check import summarize_images
from mmclca.registry import TRANSFORMS

LOAD = dict(type='mmclca.LoadPhotograph')
TURN_LEFT = 6  # EXIF: the camera's top is on the right
RED, GREEN, WHITE = (10, 10, 250), (10, 250, 10), (255, 255, 255)


def leaf(alpha=255):
    """40 wide, 24 high; red top left, green bottom right, as RGBA."""
    image = np.full((24, 40, 4), alpha, np.uint8)
    image[..., :3] = 0
    image[:12, :20, :3] = 250, 10, 10
    image[12:, 20:, :3] = 10, 250, 10
    return Image.fromarray(image)


def content_of(image, kind, **options):
    file = BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def check(content, left, right):
    """The colours top left and bottom right, nearly."""
    image = decode(content)
    assert image.shape == (24, 40, 3) and image.dtype == np.uint8
    assert np.abs(image[3, 3].astype(int) - left).max() < 25
    assert np.abs(image[20, 36].astype(int) - right).max() < 25


@pytest.mark.parametrize('kind', ['PNG', 'JPEG', 'TIFF', 'WEBP', 'BMP', 'PPM'])
@pytest.mark.parametrize('mode', ['RGB', 'L', '1'])
def test_plain_images_are_those_of_load_image_from_file(kind, mode):
    content = content_of(leaf().convert(mode), kind)
    assert (decode(content) == mmcv.imfrombytes(content)).all()


@pytest.mark.parametrize('kind', ['PNG', 'JPEG', 'TIFF', 'WEBP'])
@pytest.mark.parametrize('mode', ['RGB', 'RGBA'])
def test_exif_rotation(kind, mode):
    mode = 'RGB' if kind == 'JPEG' else mode
    turned = leaf().rotate(90, expand=True).convert(mode)
    exif = Image.Exif()
    exif[0x0112] = TURN_LEFT
    if (kind, mode) == ('WEBP', 'RGB') and cv2.__version__[0] < '5':
        pytest.skip('this OpenCV does not read the EXIF data of WebP')
    content = content_of(turned, kind, exif=exif, quality=95)
    check(content, RED, GREEN)
    same = decode(content, over_white=False) == mmcv.imfrombytes(content)
    assert mode == 'RGBA' or same.all()


@pytest.mark.parametrize('kind', ['PNG', 'TIFF', 'WEBP'])
def test_transparent_pixels_are_white(kind):
    image = np.asarray(leaf()).copy()
    image[12:, :, 3] = 0
    content = content_of(Image.fromarray(image), kind, lossless=True)
    check(content, RED, WHITE)
    image[12:, :, 3] = 128
    content = content_of(Image.fromarray(image), kind, lossless=True)
    check(content, RED, (132, 252, 132))
    hidden = decode(content, over_white=False)
    assert (hidden == mmcv.imfrombytes(content)).all()


def test_transparency_of_greys_and_palettes():
    grey = leaf(0).convert('LA')
    check(content_of(grey, 'PNG'), WHITE, WHITE)
    palette = Image.new('P', (40, 24))
    palette.putpalette([250, 10, 10, 10, 250, 10])
    palette.paste(1, (20, 12, 40, 24))
    content = content_of(palette, 'PNG')
    check(content, RED, GREEN)
    assert (decode(content) == mmcv.imfrombytes(content)).all()
    check(content_of(palette, 'PNG', transparency=1), RED, WHITE)


@pytest.mark.parametrize('kind', ['JPEG', 'TIFF'])
def test_cmyk(kind):
    check(content_of(leaf().convert('RGB').convert('CMYK'), kind), RED, GREEN)


@pytest.mark.parametrize('ending', ['.tif', '.png'])
@pytest.mark.parametrize('channels', [1, 3])
def test_16_bits_keep_their_brightness(ending, channels):
    scan = np.full((24, 40, channels), 30000, np.uint16)
    content = cv2.imencode(ending, scan)[1].tobytes()
    check(content, *[(117, 117, 117)] * 2)
    assert (decode(content) == mmcv.imfrombytes(content)).all()


def test_pillow_decodes_what_opencv_cannot(monkeypatch):
    turned = leaf().rotate(90, expand=True).convert('RGB')
    exif = Image.Exif()
    exif[0x0112] = TURN_LEFT
    content = content_of(turned, 'TIFF', exif=exif)
    monkeypatch.setattr('mmcv.imfrombytes', lambda *_: None)
    check(content, RED, GREEN)
    with pytest.raises(UndecodedError, match='cannot decode this JPEG'):
        decode(content_of(turned, 'JPEG'))


def test_heic():
    pytest.importorskip('pillow_heif')
    image = leaf().convert('RGB')
    check(content_of(image, 'HEIF', quality=95), RED, GREEN)


@pytest.mark.parametrize(
    'content', [b'', b'<html>', content_of(leaf(), 'PNG')[:60]]
)
def test_what_is_no_image(content):
    with pytest.raises(UndecodedError, match='can|not an image'):
        decode(content)


@pytest.mark.parametrize(
    'start, name',
    [
        (b'8BPS\0\1', 'PSD'),
        (b'\0\0\1\0\1\0', 'ICO'),
        (b'\0\0\0\x0cjP  \r\n', 'JPEG 2000'),
        (b'\xff\x0a\xfa', 'JPEG XL'),
        (b'\0\0\0\x0cJXL \r\n', 'JPEG XL'),
        (b'\0\0\0\x20ftypisom', 'video'),
        (b'\x1aE\xdf\xa3', 'video'),
        (b'\0\0\0\x18ftypcrx ', 'RAW'),
        (b'II*\0\x10\0\0\0CR\2\0', 'RAW'),
        (b'FUJIFILMCCD-RAW ', 'RAW'),
        (b'%PDF-1.7', 'PDF'),
        (b'version https://git-lfs.github.com/spec/v1', 'git lfs pull'),
        (b'\xef\xbb\xbf\n<!DOCTYPE html>', 'web page'),
        (b'<svg xmlns="', 'SVG'),
        (b'PK\3\4', 'archive'),
        (bytes(128) + b'DICM', 'DICOM'),
        (b'what is this', "begins with b'what is this'"),
    ],
)
def test_decode_names_the_format_if_it_is_not_read(start, name):
    for content in (start, start + bytes(300)):
        with pytest.raises(UndecodedError, match=name):
            decode(content)


def test_decode_names_raw_if_a_tiff_has_its_tags():
    for tags in ({50706: b'\1\4\0\0'}, {254: 1, 330: 8}):
        content = content_of(leaf().convert('RGB'), 'TIFF', tiffinfo=tags)
        with pytest.raises(UndecodedError, match='RAW'):
            decode(content)


@pytest.mark.parametrize('kind', ['GIF', 'AVIF'])
def test_decode_reads_the_first_frame(kind):
    if kind not in decoding.FORMATS:
        pytest.skip(f'this Pillow has no {kind}')
    frames = [leaf().convert('RGB'), Image.new('RGB', (40, 24))]
    content = content_of(
        frames[0], kind, save_all=True, append_images=frames[1:]
    )
    check(content, RED, GREEN)


@pytest.mark.parametrize('ending', ['.tif', '.png', '.ppm'])
@pytest.mark.parametrize('bits', [10, 12, 14])
def test_decode_scales_16_bits_by_the_range_of_values(
    ending, bits, monkeypatch
):
    said = []
    monkeypatch.setattr(decoding, 'warn_once', said.append)
    for channels in (3,) if ending == '.ppm' else (1, 3):
        scan = np.random.default_rng(0).integers(0, 256, (24, 40, channels))
        scan[0, 0] = 255
        deep = (scan * 257 >> 16 - bits).astype(np.uint16)
        content = cv2.imencode(ending, deep)[1].tobytes()
        assert np.abs(decode(content).astype(int) - scan).max() <= 1
        as_loaded = decode(content, over_white=False)
        assert (as_loaded == mmcv.imfrombytes(content)).all()
    assert said and f'{bits}-bit' in said[0]


def tiff(width, height, samples, bits=8, tile=None):
    """The header of a TIFF file, which has no pixels."""
    tags = {256: width, 257: height, 259: 1, 262: 2, 277: samples}
    if tile:
        tags |= {322: tile, 323: tile, 324: 8, 325: 8}
    else:
        tags |= {273: 8, 278: height, 279: 8}
    ifd = TiffImagePlugin.ImageFileDirectory_v2()
    for tag, value in (tags | {258: (bits,) * samples}).items():
        ifd[tag] = value
    if samples == 4:
        ifd[338] = 2
    return b'II*\0\x08\0\0\0' + ifd.tobytes(8)


@pytest.mark.parametrize(
    'content',
    [
        tiff(14000, 14000, 4),
        tiff(14000, 14000, 3, bits=16),
        tiff(100, 100, 3, tile=16000),
    ],
)
def test_decode_refuses_before_decoding_if_bytes_exceed(content):
    with pytest.raises(UndecodedError, match='MB when decoded'):
        decode(content)
    assert 'MB when decoded' in find_problem(content)


@pytest.mark.parametrize('kind', ['PNG', 'JPEG', 'WEBP', 'BMP', 'GIF', 'TIFF'])
def test_every_reader_is_bounded_by_decoded_bytes(kind, monkeypatch, tmp_path):
    content = content_of(leaf().convert('RGB'), kind)
    monkeypatch.setattr(decoding, 'MAX_DECODED', 40 * 24 * 3 - 1)
    path = tmp_path / 'a'
    path.write_bytes(content)
    problem = 'MB when decoded'
    assert problem in summarize_images([str(path)])[str(path)].problem
    assert problem in check_headers([str(path)])[str(path)]
    for source in (str(path), content, Image.open(BytesIO(content))):
        with pytest.raises(ValueError, match=problem):
            read_image(source)


def test_threads_wait_if_others_have_reserved_the_memory(monkeypatch):
    monkeypatch.setattr(decoding, 'MAX_DECODED', 100 * 3)
    used, most = [], []

    def decode_in_thread(pixels):
        image = Image.new('RGB', (pixels, 1))
        with decoding.reserved(image), decoding.reserved(image):  # once
            used.append(pixels)
            most.append(sum(used))
            time.sleep(0.001)
            used.remove(pixels)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(decode_in_thread, [40, 30, 100, 60, 1, 99] * 5))
    assert max(most) <= 100


def test_values_that_are_no_colours():
    heights = Image.fromarray(np.full((24, 40), 0.5, np.float32))
    with pytest.raises(UndecodedError, match='mode F'):
        decode(content_of(heights, 'TIFF'))


@pytest.mark.parametrize('kind', ['PNG', 'JPEG', 'TIFF', 'WEBP'])
def test_a_pipeline_and_predict_read_the_same(tmp_path, kind):
    image = leaf(100) if kind != 'JPEG' else leaf().convert('CMYK')
    path = str(tmp_path / 'leaf')
    (tmp_path / 'leaf').write_bytes(content_of(image, kind))
    cached = dict(type='mmclca.CacheImages', transforms=[LOAD])
    for steps in ([LOAD], [cached], [cached]):  # filled, then read
        sample = Compose([TRANSFORMS.build(step) for step in steps])(
            dict(img_path=path)
        )
        assert sample['img_shape'] == sample['ori_shape'] == (24, 40)
        assert (sample['img'] == read_image(path)).all()


def test_a_pipeline_names_the_file_that_is_no_image(tmp_path):
    (tmp_path / 'a.png').write_bytes(b'text')
    with pytest.raises(UndecodedError, match=r'a\.png: not an image'):
        TRANSFORMS.build(LOAD)(dict(img_path=str(tmp_path / 'a.png')))
