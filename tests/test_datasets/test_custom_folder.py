# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""mmpretrain's CustomDataset on images as people have them."""

import numpy as np
from mmengine.registry import init_default_scope
from mmpretrain.datasets import CustomDataset
from PIL import Image

ENDINGS = ('.jpg', '.jpeg', '.png', '.tif', '.tiff', '.bmp', '.webp')
KINDS = [f(ending) for ending in ENDINGS for f in (str.lower, str.upper)]


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


def check_upright(image):
    """Red top left, green bottom right, in BGR."""
    image = image.astype(int)
    assert image.shape == (24, 40, 3)
    assert np.abs(image[3, 3] - (10, 10, 250)).max() < 25
    assert np.abs(image[20, 36] - (10, 250, 10)).max() < 25


def test_endings_to_name_where_classes_are_found_by_folder(tmp_path):
    for label, ending in enumerate(KINDS):
        (tmp_path / f'class_{label:02d}').mkdir()
        path = tmp_path / f'class_{label:02d}' / f'a leaf{ending}'
        leaf().save(path, quality=95)
    few, all_kinds = load(tmp_path), load(tmp_path, extensions=ENDINGS)
    assert [item['gt_label'] for item in all_kinds] == [*range(len(KINDS))]
    for item in all_kinds:
        check_upright(item['img'])
    assert len(all_kinds.CLASSES) == len(KINDS)
    lost = {e for e in KINDS if e.lower() in ('.tiff', '.webp')}
    assert len(few) == len(KINDS) - len(lost)
