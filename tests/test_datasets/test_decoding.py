# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import struct
import time
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import cv2
import mmcv
import numpy as np
import pytest
from PIL import Image, TiffImagePlugin
from PIL.PngImagePlugin import PngInfo
from tiny_run import ROOT

from mmclca.datasets import decoding
from mmclca.datasets.batches import read_image
from mmclca.datasets.decoding import UndecodedError, decode, decode_by_pillow
from mmclca.datasets.image_files import check_image, check_images
from mmclca.datasets.photos.copies import summarize_images
from mmclca.registry import TRANSFORMS

LOAD = dict(type='mmclca.LoadPhoto')
RED, GREEN, WHITE = (10, 10, 250), (10, 250, 10), (255, 255, 255)
ROTATED = Image.Exif()
ROTATED[0x0112] = 6  # the top of the camera is on the right
# TIFF entries: number of the tag, type, number of values
COLOR_SPACE = struct.pack('<HHI', 262, 3, 1)
UNKNOWN = struct.pack('<HHI', 261, 3, 1)


def leaf(alpha=255):
    """RGBA image, 40 x 24 px; red top left, green bottom right."""
    image = np.full((24, 40, 4), alpha, np.uint8)
    image[..., :3] = 0
    image[:12, :20, :3] = 250, 10, 10
    image[12:, 20:, :3] = 10, 250, 10
    return Image.fromarray(image)


def content_of(image, file_format, **options):
    file = BytesIO()
    image.save(file, file_format, **options)
    return file.getvalue()


def check(content, left, right):
    """Compare the colors top left and bottom right."""
    image = decode(content)
    assert image.shape == (24, 40, 3) and image.dtype == np.uint8
    assert np.abs(image[3, 3].astype(int) - left).max() < 25
    assert np.abs(image[20, 36].astype(int) - right).max() < 25


@pytest.mark.parametrize(
    'file_format, mode, compression',
    [
        *(('PNG', mode, None) for mode in ('RGB', 'RGBA', 'P')),
        *(('TIFF', mode, 'tiff_lzw') for mode in ('RGB', 'RGBA', 'I;16')),
        *(('TIFF', mode, None) for mode in ('RGBA', 'L', 'I;16')),
        *(('JPEG', 'CMYK', None), ('WEBP', 'RGBA', None)),
        *(('BMP', 'RGB', None), ('GIF', 'RGB', None)),
    ],
)
def test_decoding_ignores_and_keeps_settings_of_the_process(
    file_format, mode, compression, monkeypatch
):
    image = leaf().convert('RGB') if mode == 'P' else leaf()
    if mode == 'I;16':
        image = Image.fromarray(np.full((24, 40), 300, np.uint16))
    elif mode != 'RGBA':
        image = image.convert(mode)
    content = content_of(image, file_format, compression=compression)
    expected = decode(content), decode_by_pillow(content)
    monkeypatch.setattr(Image, 'MAX_IMAGE_PIXELS', 1)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        before = Image.core.get_block_size(), [*warnings.filters]
        found = decode(content), decode_by_pillow(content)
        assert check_image(content) == ''
        assert before == (Image.core.get_block_size(), warnings.filters)
    assert np.array_equal(found, expected) and Image.MAX_IMAGE_PIXELS == 1


@pytest.mark.parametrize(
    'file_format', ['PNG', 'JPEG', 'TIFF', 'WEBP', 'BMP', 'PPM']
)
def test_decode_equals_load_image_from_file(file_format):
    for mode in ('RGB', 'L', '1'):
        content = content_of(leaf().convert(mode), file_format)
        assert (decode(content) == mmcv.imfrombytes(content)).all()


@pytest.mark.parametrize(
    'file_format, mode',
    [
        *(
            (file_format, 'RGB')
            for file_format in ('PNG', 'JPEG', 'TIFF', 'WEBP')
        ),
        *((file_format, 'RGBA') for file_format in ('PNG', 'TIFF', 'WEBP')),
    ],
)
def test_decode_applies_exif_orientation(file_format, mode):
    turned = leaf().rotate(90, expand=True).convert(mode)
    content = content_of(turned, file_format, exif=ROTATED, quality=95)
    check(content, RED, GREEN)
    same = decode(content, over_white=False) == mmcv.imfrombytes(content)
    assert mode == 'RGBA' or same.all()


def test_decode_blends_with_white_if_image_is_transparent():
    image = np.asarray(leaf()).copy()
    for file_format in ('PNG', 'TIFF', 'WEBP'):
        for alpha, color in ((0, WHITE), (128, (132, 252, 132))):
            image[12:, :, 3] = alpha
            content = content_of(
                Image.fromarray(image), file_format, lossless=True
            )
            check(content, RED, color)
        hidden = decode(content, over_white=False)
        assert (hidden == mmcv.imfrombytes(content)).all()


def test_decode_blends_with_white_if_gray_or_palette_is_transparent():
    check(content_of(leaf(0).convert('LA'), 'PNG'), WHITE, WHITE)
    palette = Image.new('P', (40, 24))
    palette.putpalette([250, 10, 10, 10, 250, 10])
    palette.paste(1, (20, 12, 40, 24))
    content = content_of(palette, 'PNG')
    check(content, RED, GREEN)
    assert (decode(content) == mmcv.imfrombytes(content)).all()
    check(content_of(palette, 'PNG', transparency=1), RED, WHITE)


def test_decode_finds_transparent_value_of_2_bits():
    def chunk(name, content):
        size, check = len(content), zlib.crc32(name + content)
        return (
            struct.pack('>I', size) + name + content + check.to_bytes(4, 'big')
        )

    head = struct.pack('>IIBBBBB', 4, 1, 2, 0, 0, 0, 0)
    parts = chunk(b'IHDR', head), chunk(b'tRNS', b'\0\1')
    row = chunk(b'IDAT', zlib.compress(b'\0\x1b'))  # 0, 1, 2, 3
    content = b'\x89PNG\r\n\x1a\n' + b''.join(parts) + row
    image = decode(content + chunk(b'IEND', b''))
    assert image[0, :, 0].tolist() == [0, 255, 170, 255]


@pytest.mark.parametrize('alpha', [255, 0])
def test_decode_ignores_orientation_of_xmp(alpha):
    facts = PngInfo()
    xmp = '<rdf:Description tiff:Orientation="6"/>'
    facts.add_itxt('XML:com.adobe.xmp', xmp)
    image = leaf(alpha) if alpha == 0 else leaf().convert('RGB')
    content = content_of(image, 'PNG', pnginfo=facts)
    assert (
        decode(content).shape == decode_by_pillow(content).shape == (24, 40, 3)
    )


@pytest.mark.parametrize('suffix', ['.tif', '.png', '.ppm'])
@pytest.mark.parametrize('bits', [10, 12, 14, 16])
def test_decode_scales_16_bit_images_by_range_of_values(
    suffix, bits, monkeypatch
):
    said = []
    monkeypatch.setattr(decoding, 'warn_once', said.append)
    for channels in (3,) if suffix == '.ppm' else (1, 3):
        scan = np.random.default_rng(0).integers(0, 256, (24, 40, channels))
        scan[0, 0] = 255
        deep = (scan * 257 >> 16 - bits).astype(np.uint16)
        content = cv2.imencode(suffix, deep)[1].tobytes()
        assert np.abs(decode(content).astype(int) - scan).max() <= 1
        as_loaded = decode(content, over_white=False)
        assert (as_loaded == mmcv.imfrombytes(content)).all()
    assert bool(said) == (bits < 16)
    assert all(f'{bits}-bit' in text for text in said)


@pytest.mark.parametrize('compression', [None, 'tiff_lzw', 'tiff_deflate'])
@pytest.mark.parametrize('bits', [1, 8, 12, 16])
def test_decode_inverts_gray_if_white_is_zero(bits, compression):
    gray = np.arange(24 * 40).reshape(24, 40) % 256
    deep = gray.astype(np.uint16) * 257 >> 16 - max(bits, 12)
    images = {
        1: Image.fromarray(gray > 127),
        8: Image.fromarray(gray.astype(np.uint8)),
    }
    image = images.get(bits) or Image.fromarray(deep)
    content = content_of(image, 'TIFF', compression=compression)
    # tag 262, one number: 1 is black-is-zero
    assert COLOR_SPACE + b'\1' in content
    negative = decode(
        content.replace(COLOR_SPACE + b'\1', COLOR_SPACE + b'\0')
    )
    assert (negative == 255 - decode(content)).all()
    assert np.ptp(negative) > 250


@pytest.mark.slow
def test_onnx_script_reads_deep_tiff_files_as_decode_does(
    tmp_path, monkeypatch
):
    pytest.importorskip('onnxruntime')
    monkeypatch.syspath_prepend(ROOT / 'tools/deployment')
    from infer_onnx import read

    gray = np.arange(24 * 40, dtype=np.uint16).reshape(24, 40) * 68
    content = content_of(Image.fromarray(gray), 'TIFF')
    negative = content.replace(COLOR_SPACE + b'\1', COLOR_SPACE + b'\0')
    for number, file in enumerate((content, negative)):
        path = tmp_path / f'{number}.tif'
        path.write_bytes(file)
        assert (read(path) == decode(file)).all()
    path.write_bytes(tiff(9, 9, 3, bits=16, other={284: 2}))
    assert read(path) is None


def test_pillow_decodes_if_opencv_fails(monkeypatch):
    turned = leaf().rotate(90, expand=True).convert('RGB')
    content = content_of(turned, 'TIFF', exif=ROTATED)
    monkeypatch.setattr('cv2.imdecode', lambda *_: None)
    check(content, RED, GREEN)
    with pytest.raises(UndecodedError, match='JPEG'):
        decode(content_of(turned, 'JPEG'))


@pytest.mark.parametrize(
    'file_format, mode, is_animated',
    [
        ('JPEG', 'CMYK', False),
        ('TIFF', 'CMYK', True),
        ('GIF', 'RGB', True),
        ('AVIF', 'RGB', True),
    ],
)
def test_decode_reads_first_frame_of_format(file_format, mode, is_animated):
    if file_format not in decoding.FORMATS:
        pytest.skip(f'{file_format} is not supported here')
    image, last = leaf().convert('RGB'), Image.new(mode, (40, 24))
    frames = dict(save_all=True, append_images=[last]) if is_animated else {}
    content = content_of(
        image.convert(mode), file_format, quality=95, **frames
    )
    check(content, RED, GREEN)


@pytest.mark.skipif('HEIF' not in decoding.FORMATS, reason='needs pi-heif')
def test_decode_reads_heic():
    check((ROOT / 'tests/data/leaf.heic').read_bytes(), RED, GREEN)


def tiff(width, height, samples, bits=8, tile=None, more=b'', other={}):
    """Make a TIFF header without pixels."""
    tags = {256: width, 257: height, 259: 1, 262: 2, 277: samples}
    if tile:
        tags |= {322: tile, 323: tile, 324: 8, 325: 8}
    else:
        tags |= {273: 8, 278: height, 279: 8}
    ifd = TiffImagePlugin.ImageFileDirectory_v2()
    for tag, value in (tags | {258: (bits,) * samples} | other).items():
        ifd[tag] = value
    if samples == 4:
        ifd[338] = 2
    begin = 8 + len(more)
    return struct.pack('<4sI', b'II*', begin) + more + ifd.tobytes(begin)


def raw(tags):
    return content_of(leaf().convert('RGB'), 'TIFF', tiffinfo=tags)


GRAY = content_of(leaf().convert('L'), 'TIFF')


@pytest.mark.parametrize(
    'content, term',
    [
        (b'', 'not an image'),
        (content_of(leaf(), 'PNG')[:60], 'can'),
        (content_of(Image.new('F', (9, 9)), 'TIFF'), '32-bit'),
        (tiff(9, 9, 3, other={262: 6}), 'YCbCr'),
        (tiff(9, 9, 1, other={262: 1, 339: 2}), 'signed'),
        (GRAY.replace(COLOR_SPACE, UNKNOWN), 'color space'),
        (tiff(9, 9, 3, bits=16, other={284: 2}), 'planes'),
        (b'II*\0' + bytes(200), 'TIFF'),
        (b'8BPS\0\1', 'PSD'),
        (b'\0\0\1\0\1\0', 'ICO'),
        (b'\0\0\0\x0cjP  \r\n', 'JPEG 2000'),
        (b'\xff\x0a\xfa', 'JPEG XL'),
        (b'\x1aE\xdf\xa3', 'video'),
        (b'\0\0\0\x18ftypcrx ', 'RAW'),
        (b'II*\0\x10\0\0\0CR\2\0', 'RAW'),
        (tiff(9, 9, 3, more=b'CR\2\0' + bytes(4)), 'RAW'),
        (raw({50706: b'\1\4\0\0'}), 'RAW'),
        (raw({254: 1, 330: 8}), 'RAW'),
        (b'%PDF-1.7', 'PDF'),
        (b'version https://git-lfs.github.com/spec/v1', 'git lfs pull'),
        (b'\xef\xbb\xbf\n<!DOCTYPE html>', 'web page'),
        (b'<svg xmlns="', 'SVG'),
        (b'PK\3\4', 'archive'),
        (bytes(128) + b'DICM', 'DICOM'),
        (b'P', 'not an image'),
        (b'what is this', "begins with b'what is this'"),
        (tiff(14000, 14000, 4), '784 MB when decoded.*limit of 600 MB'),
        (tiff(14000, 14000, 3, bits=16), 'MB when decoded'),
        (tiff(100, 100, 3, tile=16000), 'MB when decoded'),
    ],
)
def test_decode_names_problem_if_file_is_refused(content, term):
    for end in (b'', bytes(300 * (len(content) < 50))):
        with pytest.raises(UndecodedError, match=term) as error:
            decode(content + end)
        assert '\n' not in str(error.value)
    assert check_image(content)


@pytest.mark.parametrize(
    'file_format', ['PNG', 'JPEG', 'WEBP', 'BMP', 'GIF', 'TIFF']
)
def test_every_reader_limits_decoded_bytes(file_format, monkeypatch, tmp_path):
    content = content_of(leaf().convert('RGB'), file_format)
    monkeypatch.setattr(decoding, 'MAX_DECODED', 40 * 24 * 3 - 1)
    path = tmp_path / 'a'
    path.write_bytes(content)
    problem = 'MB when decoded'
    assert problem in summarize_images([str(path)])[str(path)].problem
    assert problem in check_images([str(path)])[str(path)]
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


def test_load_photo_equals_read_image(tmp_path):
    path, load = tmp_path / 'a.png', TRANSFORMS.build(LOAD)
    path.write_bytes(content_of(leaf(100), 'PNG'))
    sample = load(dict(img_path=str(path)))
    assert sample['img_shape'] == sample['ori_shape'] == (24, 40)
    assert (sample['img'] == read_image(str(path))).all()
    path.write_bytes(b'text')
    with pytest.raises(UndecodedError, match=r'a\.png'):
        load(dict(img_path=str(path)))
