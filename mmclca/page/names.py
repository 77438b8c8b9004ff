# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Names of uploaded files and models: their encoding, and safe spellings."""

import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from posixpath import normpath
from struct import error as StructError
from struct import unpack_from
from unicodedata import normalize
from zipfile import ZipInfo
from zlib import crc32

from mmclca.datasets.photos.encodings import guess_encoding
from mmclca.datasets.photos.spellings import normalize_name
from mmclca.errors import Error
from mmclca.languages import text
from mmclca.utils.messages import join_first

UTF8 = 0x800  # ZIP entry flag
UNICODE_PATH = 0x7075  # ZIP extra field
MAX_LETTERS, MAX_BYTES = 64, 200  # for model names
MAX_SHOWN = 40  # letters of a refused name
MAX_PART = 255  # bytes per file or folder name, on all file systems
# control characters, surrogates, and characters refused elsewhere
_REFUSED = re.compile(r'[\x00-\x1f\x7f-\x9f\ud800-\udfff/\\<>:"|?*]')
# what Windows refuses besides: ends of names, and names of devices
_REFUSED_ENDS = re.compile(r'[. ]+\Z')
_DEVICES = re.compile(r'(?:con|prn|aux|nul|com\d|lpt\d)(?=\.|\Z)', re.I)
_DRIVE = re.compile(r'\A[A-Za-z]:(?=/)')
# encodings with two bytes per letter
_WIDE = 'big5', 'cp932', 'cp949', 'gb18030'


def safe_name(name: str) -> str:
    """Return a name for a model and its folder: letters from any script.

    Characters refused by file systems become ``_``; dots and hyphens at the
    start are dropped, and long names are cut.
    """
    name = normalize_name(_REFUSED.sub('_', normalize('NFC', name)))
    name = name.lstrip('.- ')[:MAX_LETTERS]
    while len(name.encode()) > MAX_BYTES:
        name = name[:-1]
    return _avoid_devices(name.rstrip('. ') or '_')


def _avoid_devices(name: str) -> str:
    """Put ``_`` before the name of a Windows device, such as ``con.jpg``."""
    return f'_{name}' if _DEVICES.match(name) else name


def _allow_on_windows(name: str) -> str:
    """Replace what Windows refuses in the name of a file or folder."""
    allowed = _REFUSED_ENDS.sub('_', _REFUSED.sub('_', name))
    return _avoid_devices(allowed)


def name_upload(names: Sequence[str], files: Sequence[Path]) -> str:
    """Derive a model name from an upload.

    It is the folder or ZIP archive name, or the first names if several class
    folders were dropped. ``names`` are the paths in the browser, if it sent
    them.
    """
    names = names if len(names) == len(files) else [x.name for x in files]
    folders = {x.partition('/')[0] for x in names if '/' in x}
    if not folders:
        return safe_name(PurePosixPath(names[0]).stem)
    return safe_name(join_first(sorted(folders), 2))


def read_names(infos: Sequence[ZipInfo]) -> tuple[list[str], list[str]]:
    """Decode the entry names in a ZIP archive.

    Names that are marked as Unicode are used as they are. All others are in
    UTF-8 if they can be, else in one encoding, guessed from them together.

    Returns:
        tuple: Names, with ``/`` between folders; and a note if the encoding
        was guessed.
    """
    raw = {info: _raw_name(info) for info in infos}
    marked = {info: _unicode_name(info, raw[info]) for info in infos}
    unmarked = {raw[info] for info in infos if not marked[info]}
    broken = sorted(name for name in unmarked if not _is_utf8(name))
    encoding = guess_encoding(b'\n'.join(broken)) if broken else 'utf-8'
    names = (marked[x] or _decode(raw[x], encoding) for x in infos)
    note = text('page.upload.encoding', encoding=encoding)
    # Windows programs write backslashes
    return [name.replace('\\', '/') for name in names], [note] * bool(broken)


def _raw_name(info: ZipInfo) -> bytes:
    """Return a name as bytes; ``zipfile`` decoded them."""
    encoding = 'utf-8' if info.flag_bits & UTF8 else 'cp437'
    return info.orig_filename.encode(encoding).partition(b'\0')[0]


def _unicode_name(info: ZipInfo, raw: bytes) -> str:
    """Return a name marked as Unicode, else an empty text."""
    if info.flag_bits & UTF8:
        return raw.decode()
    with suppress(StructError, UnicodeDecodeError):  # damaged
        for field, content in _extra_fields(info.extra):
            # a renamed file keeps the checksum for its old name
            if (
                field == UNICODE_PATH
                and crc32(raw) == unpack_from('<xL', content)[0]
            ):
                return content[5:].decode()
    return ''


def _extra_fields(extra: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield kinds and contents for the extra fields in a ZIP entry."""
    while len(extra) >= 4:
        field, size = unpack_from('<HH', extra)
        yield field, extra[4 : 4 + size]
        extra = extra[4 + size :]


def _is_utf8(raw: bytes) -> bool:
    with suppress(UnicodeDecodeError):
        raw.decode()
        return True
    return False


def _decode(raw: bytes, encoding: str) -> str:
    """Decode a name, which may be in UTF-8 although others are not.

    Two bytes of a Chinese, Japanese or Korean encoding may look like UTF-8;
    three bytes do not.
    """
    if _is_utf8(raw):
        name = raw.decode()
        if encoding not in _WIDE or max(name, default='') >= '\u0800':
            return name
    return raw.decode(encoding, 'replace')


def normalize_path(name: str) -> PurePosixPath:
    """Return the path of an uploaded file with safe names of its folders.

    Drives and roots are dropped, and ``..`` is resolved below the root. The
    path of the root is empty. Raise an ``Error`` for a name that no file
    system can hold.
    """
    path = normpath('/' + _DRIVE.sub('', normalize('NFC', name)))
    parts = PurePosixPath(path).parts[1:]
    for part in parts:
        if len(part.encode(errors='replace')) > MAX_PART:
            raise Error(
                text(
                    'page.upload.long_name',
                    name=repr(part)[:MAX_SHOWN],
                    letters=len(part),
                    size=len(part.encode()),
                    limit=MAX_PART,
                )
            )
    if sys.platform == 'win32':
        parts = tuple(map(_allow_on_windows, parts))
    return PurePosixPath(*parts)


def distinct(paths: Sequence[PurePosixPath]) -> list[PurePosixPath]:
    """Number equal paths, whose names differed in their bytes.

    On Windows and macOS, paths that differ in case are equal.
    """
    ignores_case = sys.platform in ('win32', 'darwin')
    fold = str.casefold if ignores_case else str
    unique, counts = {}, Counter()  # in the order of the paths
    for path in paths:
        new, key = path, fold(str(path))
        while fold(str(new)) in unique:
            counts[key] += 1
            number = counts[key] + 1
            new = path.with_name(f'{path.stem} ({number}){path.suffix}')
        unique[fold(str(new))] = new
    return [*unique.values()]
