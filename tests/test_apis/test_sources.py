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
    """Images in two folders, with hidden and other files."""
    noise = np.random.default_rng(0).integers(0, 255, (20, 30, 3), np.uint8)
    for name in ('b.TIF', 'a.bmp', 'deep/c.webp', '.hidden/d.png', '._a.jpg'):
        path = tmp_path / 'leaves' / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(noise).save(path)
    (tmp_path / 'leaves/notes.txt').write_text('no image')
    return tmp_path / 'leaves'


def test_find_images_keeps_order_and_repetitions(leaves):
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
    for name in (str(leaves / '.hidden/nothing*'), 'with a \0'):
        assert find_images([name]) == [name]


def test_find_images_accepts_any_iterable(leaves):
    names = [str(leaves / x) for x in ('a.bmp', 'b.TIF', 'a.bmp')]
    iterables = [iter(names), pd.Series(names, index=[7, 7, 3])]
    iterables += [np.array(names, object), dict(enumerate(names)).values()]
    for given in iterables:
        assert find_images(given) == names
    assert sorted(find_images({*names})) == names[:2]


@pytest.mark.parametrize(
    'given, kind',
    [
        (None, 'NoneType'),
        (3, 'int'),
        ({'a.png': 1}, 'dict'),
        ([['a.png']], 'list'),
        (['a.png', None], 'image 1 .* NoneType'),
        (pd.DataFrame(dict(path=['a.png'])), 'DataFrame'),
        (torch.zeros(3, 8, 8), 'Tensor'),
        (StringIO('a.png'), 'StringIO'),
        (np.array([['a.png']]), 'ndarray'),
    ],
)
def test_find_images_refuses_other_types(given, kind):
    with pytest.raises(ValueError, match=kind):
        find_images(given)


def test_find_images_counts_skipped_files(leaves, monkeypatch):
    said = []
    monkeypatch.setattr('mmclca.datasets.image_files.warn_once', said.append)
    for name in ('d.JFIF', 'e.gif', 'f.avif', 'g.JPE', 'h.psd', 'i', 'j.TXT'):
        (leaves / name).touch()
    names = [Path(path).name for path in find_images(leaves)]
    assert names == [
        *('a.bmp', 'b.TIF', 'd.JFIF', 'c.webp', 'e.gif', 'f.avif', 'g.JPE')
    ]
    (line,) = said
    assert '4 files' in line and '2 .txt' in line and '1 .psd' in line
    find_images([str(leaves / 'j.TXT')])
    assert len(said) == 1


def test_find_images_matches_any_visible_folder(tmp_path, monkeypatch):
    paths = 'beds/2021 [a]/1.png', 'beds/b/1.png', 'beds/b/c/b/1.png'
    for name in (*paths, 'beds/.cache/1.png'):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    for pattern in ('beds/**/*.png', 'beds/**', '**/1.png', '**/*.png'):
        assert find_images([pattern]) == [*paths]
    assert find_images(['beds/**/b/**/1.png']) == [*paths[1:]]


def test_find_images_lists_each_name_if_files_or_folders_are_links(tmp_path):
    for name in ('bed/a.png', 'bed/b.png', 'one.png'):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / 'bed/loop').symlink_to(tmp_path)
    (tmp_path / 'hard.png').hardlink_to(tmp_path / 'one.png')
    (tmp_path / 'soft.png').symlink_to('one.png')
    (tmp_path / 'same_bed').symlink_to('bed')
    for place in (tmp_path, tmp_path / '**'):
        found = [Path(x).relative_to(tmp_path) for x in find_images(place)]
        assert sorted(map(str, found)) == [
            *('bed/a.png', 'bed/b.png', 'hard.png', 'one.png'),
            *('same_bed/a.png', 'same_bed/b.png', 'soft.png'),
        ]


@pytest.mark.parametrize('mode', ['L', 'P', 'LA', 'RGBA', 'CMYK', 'I;16'])
def test_read_image_returns_equal_pixels_for_every_source(tmp_path, mode):
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
        assert opened.mode in ((mode, 'I') if mode == 'I;16' else (mode,))


def test_read_image_equals_mmcv_or_refuses_damaged_images(leaves):
    for path in find_images([leaves]):
        image = mmcv.imread(path)
        assert (read_image(path) == image).all()
        assert read_image(image) is image
    file = BytesIO()
    Image.effect_noise((90, 90), 50).save(file, 'PNG')
    content = file.getvalue()[:2000]
    (leaves / 'cut.jpg').write_bytes(content)
    for source, term in (
        (content, ''),
        (Image.open(BytesIO(content)), ''),
        (str(leaves / 'cut.jpg'), ''),
        (str(leaves / 'gone.png'), 'no such file'),
        (str(leaves), 'IsADirectoryError'),
        (np.zeros((4, 4), np.uint8), r'\(4, 4\)'),
        (np.zeros((4, 4, 3), np.float32), 'float32'),
        (np.zeros((0, 4, 3), np.uint8), r'\(0, 4, 3\)'),
    ):
        with pytest.raises(ValueError, match=term):
            read_image(source)
