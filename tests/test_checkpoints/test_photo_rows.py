# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Content of model folders is checked when it is read."""

import json

import pytest

from mmclca.checkpoints.gate.photo_table import (
    PhotoFiles,
    PhotoRow,
    compute_sha256,
)
from mmclca.checkpoints.model_folder import ModelFolder
from mmclca.errors import Error

DIGEST = 'a1' * 32
ROW = dict(path='a.png', used='True') | {'class': 'ash'}
TESTED = dict(ROW, predicted='elm', p_given='0.25', p_predicted='0.5')


def test_row_of_a_tested_photo_has_all_values():
    cells = dict(TESTED, group='g', split='train', digest=DIGEST)
    assert PhotoRow.from_cells(cells) == PhotoRow(
        path='a.png',
        label='ash',
        group='g',
        split='train',
        prediction='elm',
        label_probability=0.25,
        prediction_probability=0.5,
        sha256=DIGEST,
    )


def test_row_is_held_out_by_its_split():
    cells = dict(ROW, used='False', split='val')
    assert PhotoRow.from_cells(cells).is_held_out
    cells['split'] = ''
    row = PhotoRow.from_cells(cells)
    assert not (row.is_held_out or row.is_used)


@pytest.mark.parametrize(
    'change',
    [
        dict(path=''),
        dict(path=None),
        dict(digest='../../a'),
        dict(p_given='high'),
        dict(p_given='nan'),
        dict(p_given='1.01'),
        dict(p_predicted='-inf'),
        dict(p_given=''),
        dict(p_predicted=None),
    ],
    ids=str,
)
def test_row_is_refused_if_a_cell_is_invalid(change):
    with pytest.raises(Error):
        PhotoRow.from_cells(TESTED | change)


@pytest.mark.parametrize('content', ['[]', '{', '3', '[' * 9999, '\0'])
def test_record_is_refused_if_damaged(content, tmp_path):
    (tmp_path / 'fit.json').write_text(content)
    with pytest.raises(Error, match='fit.json is damaged'):
        ModelFolder(tmp_path).read_record()
    assert not ModelFolder(tmp_path).has_threshold()


@pytest.mark.parametrize(
    'threshold, expected',
    [(None, False), ('high', False), ({}, False), (dict(threshold=1), True)],
)
def test_threshold_is_expected_if_the_record_has_one(
    threshold, expected, tmp_path
):
    record = json.dumps(dict(threshold=threshold))
    (tmp_path / 'fit.json').write_text(record)
    assert ModelFolder(tmp_path).has_threshold() == expected


def test_folder_is_opened_only_with_a_model(tmp_path):
    with pytest.raises(FileNotFoundError, match='does not contain'):
        ModelFolder.open(tmp_path)
    with pytest.raises(FileNotFoundError, match='does not exist'):
        ModelFolder.open(tmp_path / 'none')
    file = tmp_path / 'model.pth'
    file.touch()
    assert ModelFolder.open(tmp_path).model == file
    with pytest.raises(Error, match='is a file'):
        ModelFolder.open(file)


def test_digests_are_those_of_used_photos(tmp_path):
    assert ModelFolder(tmp_path).read_used_digests() == set()
    lines = ['path,class,used,digest', f'a.png,ash,True,{DIGEST}']
    lines += ['b.png,ash,True,', f'c.png,ash,False,{"b" * 64}']
    (tmp_path / 'photographs.csv').write_text('\n'.join(lines))
    folder = ModelFolder(tmp_path)
    assert folder.read_used_digests() == {DIGEST}
    assert [x.path for x in folder.read_photos()] == [
        'a.png',
        'b.png',
        'c.png',
    ]


def test_photo_is_opened_if_listed_only_with_consent(tmp_path):
    inside, outside = tmp_path / 'model/a.png', tmp_path / 'b.png'
    inside.parent.mkdir()
    rows = [PhotoRow(str(path), 'ash') for path in (inside, outside)]
    files = PhotoFiles.from_rows(rows, inside.parent)
    assert files.may_open(str(inside))
    assert not files.may_open(str(outside))
    assert files.confirm([str(outside)]).may_open(str(outside))
    assert not files.may_open(str(outside))  # unchanged
    assert files.may_open(str(tmp_path / 'named_by_the_user.png'))
    inside.symlink_to(outside)
    assert not files.may_open(str(inside))


def test_listed_photo_is_shown_only_with_the_listed_content(tmp_path):
    path = str(tmp_path / 'a.png')
    (tmp_path / 'a.png').write_bytes(b'a photo')
    sha256 = compute_sha256(path)
    listed = PhotoFiles.from_rows([PhotoRow(path, 'ash', sha256=sha256)])
    assert listed.may_show(path)
    assert not listed.may_open(path)
    (tmp_path / 'a.png').write_bytes(b'a secret')
    assert not listed.may_show(path)
    others = PhotoFiles.from_rows(
        [PhotoRow(path, 'ash', sha256=sha256)], tmp_path / 'model', tmp_path
    )
    assert others.may_show(path)
    (tmp_path / 'a.png').unlink()
    assert not listed.may_show(path)
    address = 'http://127.0.0.1:9/a.png'
    assert not PhotoFiles.from_rows([PhotoRow(address, 'ash')]).may_show(
        address
    )


def test_listed_photo_without_a_digest_is_not_shown(tmp_path):
    path = tmp_path / 'a.png'
    path.touch()
    assert not PhotoFiles.from_rows([PhotoRow(str(path), 'ash')]).may_show(
        str(path)
    )
