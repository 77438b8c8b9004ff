# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""mmpretrain's CustomDataset on images as people have them."""

import cv2
import mmcv
import numpy as np
import pytest
from mmengine.registry import init_default_scope
from mmpretrain.datasets import CustomDataset
from PIL import Image

ENDINGS = ('.jpg', '.jpeg', '.png', '.tif', '.tiff', '.bmp', '.webp')
KINDS = [f(ending) for ending in ENDINGS for f in (str.lower, str.upper)]
TURN_LEFT = 6  # EXIF: the camera's top is on the right
NO_EXIF = ('.bmp',)


def leaf():
    """40 wide, 24 high; red top left, green bottom right."""
    image = np.full((24, 40, 3), 255, np.uint8)
    image[:12, :20] = 250, 10, 10
    image[12:, 20:] = 10, 250, 10
    return Image.fromarray(image)


def load(root, **options):
    init_default_scope('mmpretrain')
    return CustomDataset(
        data_root=str(root),
        pipeline=[dict(type='LoadImageFromFile')],
        serialize_data=False,  # would collect garbage, the slowest part
        **options,
    )


def load_one(root, name):
    (root / 'train.txt').write_text(f'{name} 1\n')
    (item,) = load(root, ann_file='train.txt')
    assert item['gt_label'] == 1
    return item['img'].astype(int)


def check_upright(image):
    """Red top left, green bottom right, in BGR."""
    height, width, _ = image.shape
    assert (height, width) == (24, 40)
    assert np.abs(image[3, 3] - (10, 10, 250)).max() < 25
    assert np.abs(image[20, 36] - (10, 250, 10)).max() < 25


@pytest.mark.parametrize('ending', KINDS)
def test_every_kind_loads_from_a_list(tmp_path, ending):
    leaf().save(tmp_path / f'a leaf{ending}', quality=95)
    check_upright(load_one(tmp_path, f'a leaf{ending}'))


@pytest.mark.parametrize('ending', [e for e in ENDINGS if e not in NO_EXIF])
def test_exif_rotation(tmp_path, ending):
    if ending == '.webp' and int(cv2.__version__.split('.')[0]) < 5:
        pytest.skip('this OpenCV does not read the EXIF data of WebP')
    exif = Image.Exif()
    exif[0x0112] = TURN_LEFT
    turned = leaf().rotate(90, expand=True)
    turned.save(tmp_path / f'leaf{ending}', exif=exif, quality=95)
    check_upright(load_one(tmp_path, f'leaf{ending}'))


@pytest.mark.parametrize('mode', ['CMYK', 'RGBA'])
def test_colour_modes(tmp_path, mode):
    """Grey, palettes and 16 bits of a channel: test_parquet.py."""
    leaf().convert(mode).save(tmp_path / 'leaf.tif')
    check_upright(load_one(tmp_path, 'leaf.tif'))


def test_endings_to_name_where_classes_are_found_by_folder(tmp_path):
    for label, ending in enumerate(KINDS):
        (tmp_path / f'class_{label:02d}').mkdir()
        leaf().save(tmp_path / f'class_{label:02d}' / f'leaf{ending}')
    few, all_kinds = load(tmp_path), load(tmp_path, extensions=ENDINGS)
    found = [all_kinds.get_data_info(i) for i in range(len(all_kinds))]
    assert [item['gt_label'] for item in found] == list(range(len(KINDS)))
    assert len(all_kinds.CLASSES) == len(KINDS)
    lost = {e for e in KINDS if e.lower() in ('.tiff', '.webp')}
    assert len(few) == len(KINDS) - len(lost)


def test_truncated_images_are_no_silent_grey(tmp_path):
    leaf().resize((300, 300)).save(tmp_path / 'leaf.png')
    content = (tmp_path / 'leaf.png').read_bytes()
    (tmp_path / 'leaf.png').write_bytes(content[: len(content) // 2])
    assert mmcv.imread(tmp_path / 'leaf.png') is None
    with pytest.raises(AssertionError, match='failed to load image: .*leaf'):
        load_one(tmp_path, 'leaf.png')
