# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from functools import partial
from io import BytesIO
from itertools import product

import pytest
import ultra_fgvc_trees as trees
from PIL import Image

from mmclca.datasets import image_files
from mmclca.datasets.decoding import UndecodedError
from mmclca.datasets.image_files import (
    EMPTY,
    IMAGE_SUFFIXES,
    MISSING,
    check_image,
    check_images,
    decode_whole,
    files_below,
)

quick = partial(check_image, quick=True)


@pytest.fixture
def decoded(monkeypatch):
    """Decoded contents, in order."""
    contents, decode = [], image_files.decode
    monkeypatch.setattr(
        image_files,
        'decode',
        lambda content: contents.append(content) or decode(content),
    )
    return contents


def test_quick_check_accepts_every_format():
    kinds = Image.registered_extensions()
    for plugin in {kinds[suffix] for suffix in IMAGE_SUFFIXES}:
        content = BytesIO()
        Image.new('RGB', (40, 30)).save(content, plugin)
        assert quick(content.getvalue()) == ''


@pytest.mark.parametrize('suffix', ['.png', '.jpg'])
def test_quick_check_decodes_if_end_is_unusual(suffix, decoded):
    for after in (b'', bytes(512)):
        assert quick(trees.noise(suffix) + after) == '' and not decoded
    for after in (b'video of a camera', bytes(9000)):
        content = trees.noise(suffix) + after
        assert quick(content) == '' and decoded.pop() == content


@pytest.mark.parametrize('suffix', ['.png', '.jpg'])
def test_quick_check_finds_problem_if_file_is_truncated(suffix):
    for lost, padding in product((20, 200, 2500), (0, 300, 20_000)):
        assert quick(trees.noise(suffix)[:-lost] + bytes(padding))


@pytest.mark.parametrize('over_white', [True, False])
def test_decode_whole_refuses_truncated_webp(over_white):
    whole = trees.noise('.webp')
    for lost in (1, 20, 2500):
        with pytest.raises(UndecodedError):
            decode_whole(whole[:-lost], over_white)
    assert decode_whole(whole, over_white).shape == (64, 64, 3)


def test_check_images_returns_problems_by_path(tmp_path):
    contents = dict(
        good=trees.noise('.png'), empty=b'', text=b'text', cut=b'\x89PNG\r\n'
    )
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    names = (*contents, 'none', 'good/none')
    paths = [str(tmp_path / name) for name in names]
    found = check_images(paths)
    problems = [found.get(path, '') for path in paths]
    assert problems[:2] == ['', EMPTY] and problems[4:] == [MISSING, MISSING]
    assert all('not an image' in problem for problem in problems[2:4])
    assert [check_image(path) for path in paths] == problems
    folder = str(tmp_path)
    assert 'IsADirectoryError' in check_images([folder])[folder]


SYSTEM = (
    *('@eaDir', '#recycle', '$RECYCLE.BIN', 'System Volume Information'),
    *('lost+found', '.Trash-1000', '__MACOSX', '.ipynb_checkpoints'),
    *('.thumbnails', '@Recently-Snapshot', '.@__thumb', 'LOST.DIR'),
    *('Network Trash Folder', 'DfsrPrivate', '.dropbox.cache'),
)


def test_files_below_skips_system_folders(tmp_path):
    hidden = [*SYSTEM, *(f'ash/{name}' for name in SYSTEM)]
    for folder in (*(f'{name}/deep' for name in hidden), 'ash', 'recycles'):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / 'a.jpg').touch()
    (tmp_path / 'ash/._a.jpg').touch()
    skipped = []
    files = files_below(str(tmp_path), skipped)
    assert files == [str(tmp_path / x / 'a.jpg') for x in ('ash', 'recycles')]
    names = (*hidden, 'ash/._a.jpg')
    assert sorted(skipped) == sorted(str(tmp_path / x) for x in names)
