# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Names of uploaded files and models, as other systems write them."""

from io import BytesIO
from pathlib import Path, PurePosixPath
from struct import pack
from unicodedata import normalize
from zipfile import ZipFile, ZipInfo
from zlib import crc32

import pytest

from mmclca.page.names import (
    distinct,
    name_upload,
    normalize_path,
    read_names,
    safe_name,
)

CHINESE = '水青冈', '白蜡树', '榆树', '栎树'


class RawInfo(ZipInfo):
    """Entry whose name is bytes without the UTF-8 flag."""

    def _encodeFilenameFlags(self):  # noqa: N802, of zipfile
        return self.raw, self.flag_bits


def entries(*names, extra=b''):
    """Entries of an archive, as zipfile reads them, of bytes or texts."""
    file = BytesIO()
    with ZipFile(file, 'w') as archive:
        for index, name in enumerate(names):
            info = RawInfo(str(index))
            info.raw, info.extra = name, extra
            if isinstance(name, str):
                info.raw, info.flag_bits = name.encode(), 0x800
            archive.writestr(info, '')
    with ZipFile(file) as archive:
        return archive.infolist()


@pytest.mark.parametrize(
    'encoding, names',
    [
        ('gb18030', CHINESE),
        ('big5', ('櫻花', '臺灣杉', '水稻')),
        ('cp932', ('ブナ', 'ケヤキ', '桜')),
        ('cp949', ('참나무', '느릅나무')),
        ('cp1251', ('дуб', 'Клён')),
        ('cp866', ('дуб', 'ЯСЕНЬ')),
        ('cp850', ('Büche', 'érable', 'Weißdorn')),
        ('cp437', ('Büche', 'érable', 'Weißdorn')),
        ('cp1252', ('Büche', 'BÜCHE', 'Weißdorn')),
        ('cp852', ('dąb', 'jabłoń', 'śliwa')),
        ('cp1250', ('tölgy', 'fűz', 'kőris')),
        ('cp857', ('Nazlı', 'ağaç', 'şeftali')),
        ('cp1254', ('Nazlı', 'ağaç', 'şeftali')),
    ],
)
def test_names_are_decoded_with_a_note_if_not_in_utf8(encoding, names):
    paths = [f'photos/{name}/IMG_1.jpg' for name in names]
    found, notes = read_names(entries(*(x.encode(encoding) for x in paths)))
    (note,) = notes
    assert found == paths and 'not in UTF-8' in note


def test_names_may_be_empty_if_others_are_not_in_utf8():
    names, _ = read_names(entries(b'', *(x.encode('gbk') for x in CHINESE)))
    assert names == ['', *CHINESE]


@pytest.mark.parametrize('form', ['NFC', 'NFD'])
def test_names_are_read_as_utf8_without_its_flag(form):
    paths = [normalize(form, f'{x}/1.jpg') for x in ('Büche', 'मक्का', '松')]
    found, notes = read_names(entries(*(x.encode() for x in paths)))
    assert found == paths and not notes


def test_names_of_several_encodings_are_read_in_one_archive():
    marked = [f'{name}/1.jpg' for name in CHINESE[:2]]
    raw = [f'{name}/2.jpg'.encode('gbk') for name in CHINESE]
    utf8 = [f'{name}/3.jpg'.encode() for name in CHINESE]
    found, notes = read_names(entries(*marked, *raw, *utf8))
    folders = [path.partition('/')[0] for path in found]
    assert folders == [*CHINESE[:2], *CHINESE, *CHINESE] and len(notes) == 1
    found, _ = read_names(entries('Büche'.encode(), 'Öl'.encode('cp850')))
    assert found == ['Büche', 'Öl']


@pytest.mark.parametrize(
    'checked, name', [(b'_', '松'), (b'old', '_')], ids=['valid', 'outdated']
)
def test_unicode_field_is_used_if_it_belongs_to_the_name(checked, name):
    content = pack('<BL', 1, crc32(checked)) + '松'.encode()
    extra = pack('<HH', 0x7075, len(content)) + content
    assert read_names(entries(b'_', extra=extra)) == ([name], [])
    (info,) = entries(b'_')
    info.extra = extra[:6]  # damaged
    assert read_names([info]) == (['_'], [])


@pytest.mark.parametrize(
    'name, parts',
    [
        ('net/ash/1.jpg', ('net', 'ash', '1.jpg')),
        ('C:/net/ash/1.jpg', ('net', 'ash', '1.jpg')),
        ('//server/net/1.jpg', ('server', 'net', '1.jpg')),
        ('/ash//./1.jpg', ('ash', '1.jpg')),
        ('../../ash/../oak/1.jpg', ('oak', '1.jpg')),
        (normalize('NFD', 'Büche/ä.jpg'), ('Büche', 'ä.jpg')),
        ('A: ash/1.jpg', ('A: ash', '1.jpg')),
        ('..', ()),
    ],
)
def test_path_is_split_below_its_root(name, parts):
    assert normalize_path(name).parts == parts


def test_backslashes_separate_folders():
    found, _ = read_names(entries(b'C:\\net\\ash\\1.jpg', b'net/oak\\1.jpg'))
    assert found == ['C:/net/ash/1.jpg', 'net/oak/1.jpg']


@pytest.mark.parametrize('letter', ['x', '松'])
def test_name_is_refused_if_no_file_system_holds_it(letter):
    with pytest.raises(ValueError, match='255'):
        normalize_path(f'ash/{letter * 256}.jpg')
    assert normalize_path(f'ash/{"x" * 251}.jpg').parts


def test_equal_paths_are_numbered():
    paths = ['a/1.jpg', 'a/1.jpg', 'a/1 (2).jpg', 'b/1.jpg', 'a/1.jpg']
    found = [*map(str, distinct([*map(PurePosixPath, paths)]))]
    assert found[1] == 'a/1 (2).jpg' and len({*found}) == 5
    assert {Path(x).suffix for x in found} == {'.jpg'}
    many = distinct([PurePosixPath('a/1.jpg')] * 10_000)  # hostile, in time
    assert str(many[-1]) == 'a/1 (10000).jpg'


SCRIPTS = ('Blätter', 'मक्का की पत्ती', 'ใบข้าว', 'أوراق الذُّرة', 'a, b & c’s #1')


@pytest.mark.parametrize('name', SCRIPTS)
def test_name_is_kept_if_it_has_letters_of_any_script(name):
    assert safe_name(normalize('NFD', name)) == normalize('NFC', name)


UNSAFE = ('../x', '.x', '-x', 'a/b', 'a\\b', 'C:', 'x' * 99, '\0', '松' * 80)


@pytest.mark.parametrize('name', UNSAFE)
def test_name_is_made_safe_for_a_folder(name):
    safe = safe_name(name)
    assert safe != name and safe == safe_name(safe) and safe[0] not in '.-'
    assert not {*'/\\:\0'} & {*safe} and 0 < len(safe.encode()) < 256


@pytest.mark.parametrize(
    'names, name',
    [
        (['leaves/ash/1.jpg', 'leaves/oak/1.jpg'], 'leaves'),
        (['leaves/ash/1.jpg', 'notes.txt'], 'leaves'),
        (['oak/1.jpg', 'ash/1.jpg'], 'ash, oak'),
        (['a/1.jpg', 'b/1.jpg', 'c/1.jpg'], 'a, b and 1 more'),
        (['Blätter 2.zip'], 'Blätter 2'),
    ],
)
def test_model_is_named_after_the_uploaded_folders(names, name):
    assert name_upload(names, [Path('x.jpg')] * len(names)) == name
