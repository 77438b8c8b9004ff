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
    check_headers,
    files_below,
    find_problem,
)

quick = partial(find_problem, quick=True)


@pytest.fixture
def decoded(monkeypatch):
    """What is decoded, in order."""
    contents, decode = [], image_files.decode
    monkeypatch.setattr(
        image_files,
        'decode',
        lambda content: contents.append(content) or decode(content),
    )
    return contents


@pytest.mark.parametrize('ending', IMAGE_SUFFIXES)
def test_every_kind_of_image_is_in_order(ending):
    content = BytesIO()
    Image.new('RGB', (40, 30)).save(
        content, Image.registered_extensions()[ending]
    )
    assert quick(content.getvalue()) == ''


@pytest.mark.parametrize('ending', ['.png', '.jpg'])
def test_padding_is_no_suspicion(ending, decoded):
    assert quick(trees.noise(ending)) == ''
    assert quick(trees.noise(ending) + bytes(512)) == ''
    assert decoded == []


@pytest.mark.parametrize('ending', ['.png', '.jpg'])
@pytest.mark.parametrize(
    'after', [b'a camera writes a film here', bytes(9000)]
)
def test_what_ends_differently_is_decoded(ending, after, decoded):
    content = trees.noise(ending) + after
    assert quick(content) == ''
    assert decoded == [content]


@pytest.mark.parametrize('ending', ['.png', '.jpg'])
@pytest.mark.parametrize('padding', [0, 300, 20_000])
@pytest.mark.parametrize('lost', [20, 200, 2500])
def test_an_end_that_is_missing(ending, lost, padding):
    content = trees.noise(ending)[:-lost] + bytes(padding)
    assert quick(content)


def test_files_and_problems(tmp_path):
    contents = dict(
        good=trees.noise('.png'), empty=b'', text=b'text', cut=b'\x89PNG\r\n'
    )
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    names = (*contents, 'none', 'good/none')
    paths = [str(tmp_path / name) for name in names]
    found = check_headers(paths)
    problems = [found.get(path, '') for path in paths]
    assert problems[:2] == ['', EMPTY] and problems[4:] == [MISSING, MISSING]
    assert problems[2] == "not an image: it begins with b'text'"
    assert 'not an image' in problems[3]
    assert [find_problem(path) for path in paths] == problems
    folder = str(tmp_path)
    assert 'IsADirectoryError' in check_headers([folder])[folder]


@pytest.mark.parametrize(
    'name',
    [
        *('@eaDir', '#recycle', '$RECYCLE.BIN', 'System Volume Information'),
        *('lost+found', '.Trash-1000', '__MACOSX', '.ipynb_checkpoints'),
        *('.thumbnails', '@Recently-Snapshot', '.@__thumb', 'LOST.DIR'),
        *('Network Trash Folder', 'DfsrPrivate', '.dropbox.cache'),
    ],
)
def test_files_below_skips_folders_of_systems(tmp_path, name):
    for folder in ('ash', f'ash/{name}/deep', name):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / 'a.jpg').touch()
    (tmp_path / 'ash/._a.jpg').touch()
    skipped = []
    found = files_below(str(tmp_path), skipped)
    assert found == [str(tmp_path / 'ash/a.jpg')]
    names = (name, f'ash/{name}', 'ash/._a.jpg')
    assert sorted(skipped) == sorted(str(tmp_path / x) for x in names)
