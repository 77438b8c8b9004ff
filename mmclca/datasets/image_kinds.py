# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Kinds of files that are not read, recognized by their first bytes."""

import re

_CONVERT = 'which is not supported: save it as JPEG, PNG or TIFF'
RAW = f'RAW of a camera, {_CONVERT}'
# patterns of the first bytes; the first match counts
_KINDS = {
    rb'....ftyp(heic|heix|heim|heis|hevc|hevx|mif1|msf1)': (
        'HEIC, which needs: pip install "mmclca[heic]"'
    ),
    rb'....ftypavi[fs]': 'AVIF, which needs Pillow 11.3 or newer',
    rb'....ftypcrx|II\*\0.{4}CR|II\x1a|IIR[OS]|IIU\0|MMOR|FUJIFILMCCD': RAW,
    rb'....(ftyp|moov|mdat)|\x1aE\xdf\xa3|RIFF....AVI |\0\0\x01\xba': (
        'a video, which is not supported: save a frame of it as JPEG or PNG'
    ),
    rb'\xff\x0a|\0\0\0\x0cJXL ': f'JPEG XL, {_CONVERT}',
    rb'\0\0\0\x0cjP  |\xff\x4f\xff\x51': f'JPEG 2000, {_CONVERT}',
    rb'GIF8': f'GIF, {_CONVERT}',
    rb'8BPS': f'PSD of Photoshop, {_CONVERT}',
    rb'\0\0[\x01\x02]\0': f'ICO or CUR, an icon, {_CONVERT}',
    rb'gimp xcf': f'XCF of GIMP, {_CONVERT}',
    rb'DDS |qoif|v/1\x01|#\?RADIANCE|SIMPLE  =': (
        f'DDS, QOI, EXR, HDR or FITS, {_CONVERT}'
    ),
    rb'.{128}DICM': f'DICOM, {_CONVERT}',
    rb'%PDF': f'PDF, {_CONVERT}',
    rb'%!PS|\xc5\xd0\xd3\xc6': f'PostScript (EPS), {_CONVERT}',
    rb'version https://git-lfs': 'no image but a Git LFS pointer: run "git lfs pull"',
    rb'\s*<(!doctype html|html|head|body)': (
        'no image but a web page (HTML): download the image again'
    ),
    rb'\s*<(svg|\?xml|!--|!doctype svg)': f'SVG or XML, {_CONVERT}',
    rb'PK\x03\x04|\x1f\x8b|Rar!|7z\xbc\xaf|BZh|\xfd7zXZ': (
        'no image but an archive (ZIP, gzip, RAR or 7z): unpack it'
    ),
}
_DNG_VERSION, _SUBFILE_TYPE, _SUB_IFDS = 50706, 254, 330


def kind_of(start: bytes) -> str:
    """Describe a file that is not read as an image, and how to convert it.

    Args:
        start (bytes): Its first bytes, 132 or more.
    """
    text = start.removeprefix(b'\xef\xbb\xbf')
    for pattern, kind in _KINDS.items():
        if re.match(pattern, text, re.DOTALL | re.IGNORECASE):
            return kind
    return f'no image: it begins with {start[:12]!r}'


def is_raw(start: bytes, tags) -> bool:
    """Tell RAW files of cameras from other TIFF files.

    Where TIFF files hold the image, DNG, NEF and ARW hold a small preview.

    Args:
        start (bytes): The first bytes of a file that begins as a TIFF does.
        tags (Mapping): The tags of its first image.
    """
    is_preview = tags.get(_SUBFILE_TYPE, 0) & 1 and _SUB_IFDS in tags
    return start[8:10] == b'CR' or _DNG_VERSION in tags or bool(is_preview)
