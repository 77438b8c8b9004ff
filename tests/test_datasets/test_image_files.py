# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from functools import partial
from io import BytesIO

import pytest
import ultra_fgvc_trees as trees
from PIL import Image

from mmclca.datasets import image_files
from mmclca.datasets.image_files import (
    EMPTY,
    IMAGE_SUFFIXES,
    MISSING,
    check_image,
    check_images,
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


@pytest.mark.parametrize('suffix', IMAGE_SUFFIXES)
def test_quick_check_accepts_every_format(suffix):
    content = BytesIO()
    kind = Image.registered_extensions()[suffix]
    Image.new('RGB', (40, 30)).save(content, kind)
    assert quick(content.getvalue()) == ''


@pytest.mark.parametrize('suffix', ['.png', '.jpg'])
@pytest.mark.parametrize(
    'after, is_decoded',
    [
        (b'', False),
        (bytes(512), False),
        (b'video of a camera', True),
        (bytes(9000), True),
    ],
)
def test_quick_check_decodes_if_end_is_unusual(
    suffix, after, is_decoded, decoded
):
    content = trees.noise(suffix) + after
    assert quick(content) == ''
    assert decoded == [content] * is_decoded


@pytest.mark.parametrize('suffix', ['.png', '.jpg'])
@pytest.mark.parametrize('padding', [0, 300, 20_000])
@pytest.mark.parametrize('lost', [20, 200, 2500])
def test_quick_check_finds_problem_if_file_is_truncated(suffix, lost, padding):
    assert quick(trees.noise(suffix)[:-lost] + bytes(padding))


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


@pytest.mark.parametrize(
    'name',
    [
        *('@eaDir', '#recycle', '$RECYCLE.BIN', 'System Volume Information'),
        *('lost+found', '.Trash-1000', '__MACOSX', '.ipynb_checkpoints'),
        *('.thumbnails', '@Recently-Snapshot', '.@__thumb', 'LOST.DIR'),
        *('Network Trash Folder', 'DfsrPrivate', '.dropbox.cache'),
    ],
)
def test_files_below_skips_system_folders(tmp_path, name):
    for folder in ('ash', f'ash/{name}/deep', name):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / 'a.jpg').touch()
    (tmp_path / 'ash/._a.jpg').touch()
    skipped = []
    found = files_below(str(tmp_path), skipped)
    assert found == [str(tmp_path / 'ash/a.jpg')]
    names = (name, f'ash/{name}', 'ash/._a.jpg')
    assert sorted(skipped) == sorted(str(tmp_path / x) for x in names)
