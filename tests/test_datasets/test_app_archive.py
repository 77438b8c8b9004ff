# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""ZIP archives of corrected photos from the phone app."""

import json
from zipfile import ZipFile

import pytest

from mmclca.datasets.photos import list_images, read_photos
from mmclca.datasets.photos.app_archive import (
    AppFacts,
    label_photos,
    read_facts,
    unpack_archive,
)
from mmclca.errors import Error
from mmclca.fitting.sorted_folder import is_sorted
from mmclca.page.uploads import store

FACTS = dict(
    name='Grapes',
    model='0123456789ab',
    classes=['Ak', 'Dimnit', 'Üzüm "x"'],
    folders={'Ak': 'Ak', 'Üzüm _x_': 'Üzüm "x"'},
)
FILES = {
    'app.json': json.dumps(FACTS).encode(),
    'identified.csv': b'image\n',
    'Ak/2026-11-29_10-15-30_plant-a1_1.jpg': b'1',
    'Üzüm _x_/2026-11-29_10-16-30_plant-a2_1.jpg': b'2',
}


def write_archive(path, files):
    with ZipFile(path, 'w') as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


@pytest.fixture
def archive(tmp_path):
    return write_archive(tmp_path / 'corrected.zip', FILES)


def test_archive_is_unpacked_once(archive, tmp_path):
    folder = unpack_archive(archive)
    assert folder == tmp_path / 'corrected'
    labels = label_photos(folder, read_facts(folder))
    expected = {name for name in FILES if name.endswith('.jpg')}
    assert {*labels} == {str(folder / name) for name in expected}
    assert {*labels.values()} == {'Ak', 'Üzüm "x"'}
    times = {x: x.stat().st_mtime_ns for x in folder.rglob('*')}
    assert unpack_archive(archive) == folder
    assert times == {x: x.stat().st_mtime_ns for x in folder.rglob('*')}
    assert {*tmp_path.iterdir()} == {archive, folder}


def test_photos_of_an_archive_have_the_classes_of_the_app(archive):
    photos = read_photos(archive)
    assert photos.classes == ['Ak', 'Üzüm "x"'] and len(photos) == 2
    assert 'app.json' in ' '.join(photos.unused)
    assert list_images(archive.with_suffix('')).classes == photos.classes


def test_file_of_another_program_with_this_name_is_ignored(archive):
    folder = unpack_archive(archive)
    (folder / 'app.json').write_text('{"expo": {"name": "Grapes"}}')
    assert read_photos(folder).classes == ['Ak', 'Üzüm _x_']
    (folder / 'app.json').write_text('{"expo":')
    with pytest.raises(Error, match=r'app\.json is damaged'):
        read_photos(folder)
    assert not is_sorted(folder, ['Ak', 'Üzüm _x_'])


@pytest.mark.parametrize(
    'changes, message',
    [
        ({'app.json': None}, 'not an archive of the phone app'),
        ({'../Ak/1.jpg': b''}, 'a file that the phone app does not write'),
        ({'/Ak/1.jpg': b''}, 'a file that the phone app does not write'),
        ({'Ak/.hidden.jpg': b''}, 'a file that the phone app does not write'),
        ({'Ak/deep/1.jpg': b''}, 'a file that the phone app does not write'),
        ({'run.exe': b''}, 'a file that the phone app does not write'),
    ],
)
def test_archive_is_refused_if_it_has_other_files(changes, message, tmp_path):
    files = {
        name: content
        for name, content in (FILES | changes).items()
        if content is not None
    }
    with pytest.raises(Error, match=message):
        unpack_archive(write_archive(tmp_path / 'other.zip', files))
    assert [x.name for x in tmp_path.iterdir()] == ['other.zip']


def test_archive_is_refused_if_it_is_damaged(archive, tmp_path):
    content = archive.read_bytes()
    archive.write_bytes(content.replace(b'1', b'3', 1))
    with pytest.raises(Error, match=r'corrected\.zip .*(damaged|unpacked)'):
        unpack_archive(archive)
    archive.write_bytes(content[:99])
    with pytest.raises(Error, match='cannot be unpacked'):
        unpack_archive(archive)
    assert [*tmp_path.iterdir()] == [archive]


def test_folder_with_other_files_is_kept(archive, tmp_path):
    (tmp_path / 'corrected').mkdir()
    (tmp_path / 'corrected/mine.jpg').write_bytes(b'mine')
    with pytest.raises(Error, match='has other files than corrected.zip'):
        unpack_archive(archive)
    assert (tmp_path / 'corrected/mine.jpg').read_bytes() == b'mine'


@pytest.mark.parametrize('content', [b'{', b'[]', b'{"folders": 1}'])
def test_facts_are_refused_if_they_are_damaged(content, tmp_path):
    (tmp_path / 'app.json').write_bytes(content)
    with pytest.raises(Error, match=r'app\.json is damaged'):
        read_facts(tmp_path)


def test_photos_are_refused_if_the_app_has_another_model(tmp_path):
    facts = AppFacts(**FACTS)
    facts.check_model(tmp_path, ['Ak', 'Dimnit', 'renamed', 'added'])
    with pytest.raises(Error, match=r"app 'Grapes' of another model: 2 of"):
        facts.check_model(tmp_path, ['Ak', 'rust', 'healthy'])


def test_folder_without_facts_is_not_of_the_app(tmp_path):
    assert read_facts(tmp_path) is None


def test_form_reads_an_archive(archive, tmp_path):
    folder = tmp_path / 'form'
    folder.mkdir()
    notes, counts = store(
        [archive],
        [archive.name],
        folder,
        lambda photos: str(read_photos(photos).counts()),
    )
    assert not notes and counts == str({'Ak': 1, 'Üzüm "x"': 1})
