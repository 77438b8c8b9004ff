# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from io import BytesIO, StringIO
from pathlib import Path

import mmcv
import numpy as np
import pandas as pd
import pytest
import torch
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


def test_find_images_gives_every_entry_in_order_if_repeated(leaves):
    array = np.zeros((2, 2, 3), np.uint8)
    all_three = [str(leaves / n) for n in ('a.bmp', 'b.TIF', 'deep/c.webp')]
    assert find_images([leaves]) == find_images(leaves) == all_three
    assert find_images([f'{leaves}/*.TIF']) == all_three[1:2]
    assert find_images([f'{leaves}/**/*.webp']) == all_three[2:]
    assert find_images([str(leaves)[:-1] + '*']) == all_three
    places = [array, leaves / 'b.TIF', leaves, array, 'gone', 'gone']
    first, *paths, second, gone, again = find_images(places)
    assert first is second is array
    assert paths == [all_three[1], *all_three]
    assert gone == again == 'gone'
    nothing = str(leaves / '.hidden' / 'nothing*')
    assert find_images([nothing]) == [nothing]
    assert find_images(['with a \0']) == ['with a \0']


def test_find_images_takes_any_iterable(leaves):
    paths = [leaves / 'a.bmp', leaves / 'b.TIF', leaves / 'a.bmp']
    names = [*map(str, paths)]
    for given in (
        tuple(paths),
        iter(paths),
        (path for path in paths),
        pd.Series(names, index=[7, 7, 3]),
        np.array(names),
        np.array(paths, object),
        dict(enumerate(names)).values(),
        dict.fromkeys(names[:2]).keys() | set(),
    ):
        found = find_images(given)
        assert found == names or sorted(found) == sorted(names[:2])


@pytest.mark.parametrize(
    'given, kind',
    [
        (None, 'NoneType'),
        (3, 'int'),
        ({'a.png': 1}, 'dict'),
        ([['a.png']], 'list'),
        (['a.png', None], 'image 1 has type NoneType'),
        (pd.DataFrame(dict(path=['a.png'])), 'DataFrame'),
        (torch.zeros(3, 8, 8), 'Tensor'),
        (StringIO('a.png'), 'StringIO'),
        (np.array([['a.png']]), 'ndarray'),
    ],
)
def test_find_images_names_the_type_if_it_is_no_image(given, kind):
    with pytest.raises(ValueError, match=kind) as error:
        find_images(given)
    assert '\n' not in str(error.value)


def test_find_images_counts_files_that_are_passed_over(leaves, monkeypatch):
    said = []
    monkeypatch.setattr('mmclca.datasets.image_files.warn_once', said.append)
    for name in ('d.JFIF', 'e.gif', 'f.avif', 'g.JPE', 'h.psd', 'i', 'j.TXT'):
        (leaves / name).touch()
    names = [Path(path).name for path in find_images(leaves)]
    assert names[:3] == ['a.bmp', 'b.TIF', 'd.JFIF']
    assert names[3:] == ['c.webp', 'e.gif', 'f.avif', 'g.JPE']
    (line,) = said
    assert '4 files' in line and '2 .txt' in line and '1 .psd' in line
    find_images([str(leaves / 'j.TXT')])
    assert len(said) == 1


def test_links_in_a_folder_add_nothing(leaves):
    all_three = find_images([leaves])
    (leaves / 'deep/loop').symlink_to(leaves)
    (leaves / 'z_link.png').symlink_to(leaves / 'a.bmp')
    assert find_images([leaves]) == all_three


@pytest.mark.parametrize('mode', ['L', 'P', 'LA', 'RGBA', 'CMYK', 'I;16'])
def test_every_form_of_an_image_is_read_alike(tmp_path, mode):
    kind = 'TIFF' if mode == 'CMYK' else 'PNG'
    noise = np.random.default_rng(0).integers(0, 255, (20, 30, 4), np.uint8)
    image = Image.fromarray(noise).convert('RGBA')
    if mode == 'I;16':
        image = Image.fromarray(noise[..., 0].astype(np.uint16) * 257)
    else:
        image = image.convert('RGB' if mode in 'CMYK' else 'RGBA')
        image = image.convert(mode)
    exif = Image.Exif()
    exif[0x0112] = 6
    image.save(tmp_path / 'a', kind, exif=exif)
    content = (tmp_path / 'a').read_bytes()
    expected = read_image(str(tmp_path / 'a'))
    assert expected.shape == (30, 20, 3)
    with open(tmp_path / 'a', 'rb') as file:
        for source in (content, bytearray(content), file, file):
            assert (read_image(source) == expected).all()
    with Image.open(BytesIO(content)) as opened:
        assert np.abs(read_image(opened).astype(int) - expected).max() < 3
        assert opened.mode == mode


def test_damaged_image_is_refused_in_every_form():
    file = BytesIO()
    Image.effect_noise((90, 90), 50).save(file, 'PNG')
    content = file.getvalue()[:2000]
    for source in (content, BytesIO(content), Image.open(BytesIO(content))):
        with pytest.raises(ValueError):
            read_image(source)
    with pytest.raises(ValueError, match='empty file'):
        read_image(b'')
    with pytest.raises(ValueError, match='mode F'):
        read_image(Image.new('F', (4, 4)))


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
    assert 'it begins with' in reason(str(leaves / 'notes.txt'))
    assert reason(str(tmp_path / 'gone.png')) == 'no such file or folder'
    Image.new('RGB', (90, 90)).save(tmp_path / 'cut.jpg')
    whole = Path(tmp_path / 'cut.jpg').read_bytes()
    (tmp_path / 'cut.jpg').write_bytes(whole[:-40])
    assert 'truncated' in reason(str(tmp_path / 'cut.jpg'))
    assert 'IsADirectoryError' in reason(str(leaves))
    for shape, kind in (
        ((4, 4), np.uint8),
        ((4, 4, 3), np.float32),
        ((0, 4, 3), np.uint8),
    ):
        array = np.zeros(shape, kind)
        expected = f'{shape} and type {array.dtype}'
        assert expected in reason(array)
