# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from pathlib import Path

import mmcv
import numpy as np
import pytest
from PIL import Image

from mmclca.apis import find_images
from mmclca.datasets.batches import read_image


@pytest.fixture
def leaves(tmp_path):
    """Images in two folders, beside what is none."""
    noise = np.random.default_rng(0).integers(0, 255, (20, 30, 3), np.uint8)
    for name in ('b.TIF', 'a.bmp', 'deep/c.webp', '.hidden/d.png', '._a.jpg'):
        path = tmp_path / 'leaves' / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(noise).save(path)
    (tmp_path / 'leaves/notes.txt').write_text('no image')
    return tmp_path / 'leaves'


def test_files_folders_patterns_and_arrays_each_once(leaves):
    array = np.zeros((2, 2, 3), np.uint8)
    all_three = [str(leaves / n) for n in ('a.bmp', 'b.TIF', 'deep/c.webp')]
    assert find_images([leaves]) == all_three
    assert find_images([f'{leaves}/*.TIF']) == all_three[1:2]
    assert find_images([f'{leaves}/**/*.webp']) == all_three[2:]
    assert find_images([str(leaves)[:-1] + '*']) == all_three
    places = [array, leaves / 'b.TIF', leaves, array, 'gone', leaves]
    first, second, *others = find_images(places)
    assert first is array and second == all_three[1]
    assert others[0] == all_three[0] and others[1] == all_three[2]
    assert others[2] is array and others[3:] == ['gone']
    assert find_images([leaves / '.hidden' / 'nothing*']) == [
        str(leaves / '.hidden' / 'nothing*')
    ]


def test_links_and_other_spellings_of_a_path_add_nothing(leaves, monkeypatch):
    all_three = find_images([leaves])
    (leaves / 'deep/loop').symlink_to(leaves)
    (leaves / 'z_link.png').symlink_to(leaves / 'a.bmp')
    assert find_images([leaves]) == all_three
    monkeypatch.chdir(leaves)
    assert find_images(['a.bmp', './a.bmp', 'deep/../a.bmp']) == ['a.bmp']


def test_pixels_are_those_that_training_reads(leaves):
    for path in find_images([leaves]):
        assert (read_image(path) == mmcv.imread(path)).all()
    image = mmcv.imread(leaves / 'a.bmp')
    assert read_image(image) is image


def test_what_is_no_image(leaves, tmp_path):
    def reason(source):
        with pytest.raises(ValueError) as error:
            read_image(source)
        return str(error.value)

    (tmp_path / 'empty.png').write_bytes(b'')
    assert reason(str(tmp_path / 'empty.png')) == 'empty file'
    assert 'no image: it begins with' in reason(str(leaves / 'notes.txt'))
    assert reason(str(tmp_path / 'gone.png')) == 'no such file or folder'
    Image.new('RGB', (90, 90)).save(tmp_path / 'cut.jpg')
    whole = Path(tmp_path / 'cut.jpg').read_bytes()
    (tmp_path / 'cut.jpg').write_bytes(whole[:-40])
    assert 'cut short' in reason(str(tmp_path / 'cut.jpg'))
    assert 'IsADirectoryError' in reason(str(leaves))
    for shape, kind in (
        ((4, 4), np.uint8),
        ((4, 4, 3), np.float32),
        ((0, 4, 3), np.uint8),
    ):
        array = np.zeros(shape, kind)
        expected = f'an array {shape} of {array.dtype} is no BGR image: give'
        assert reason(array).startswith(expected)
