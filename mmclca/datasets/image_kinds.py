# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Recognize unsupported file formats by their first bytes."""

import re
from collections.abc import Mapping

from mmclca.utils.file_kinds import match_kind

_ADVICE = 'not supported; save it as JPEG, PNG or TIFF'
_RAW = 'camera RAW'
RAW = f'{_RAW}: {_ADVICE}'
TIFF_ADVICE = 'not supported; save it as gray or RGB with 8 or 16 bits'
_OTHER_ADVICE = dict(
    HEIC='pip install "mmclca[heic]" adds support',
    AVIF='needs Pillow 11.3 or newer',
    archive='not an image; unpack it',
    TIFF=TIFF_ADVICE,
)
# pattern of the first bytes per format; the first match counts
_KINDS = {
    'HEIC': rb'....ftyp(he[iv].|mif1|msf1)',
    'AVIF': rb'....ftypavi',
    _RAW: rb'....ftypcrx|II\*\0.{4}CR|II\x1a|IIR[OS]|IIU\0|MMOR|FUJIFILMCCD',
    'a video': rb'....(ftyp|moov|mdat)|\x1aE\xdf\xa3|RIFF....AVI ',
    'JPEG XL': rb'\xff\x0a|\0\0\0\x0cJXL ',
    'JPEG 2000': rb'\0\0\0\x0cjP  |\xff\x4f\xff\x51',
    'Photoshop PSD': rb'8BPS',
    'an icon (ICO)': rb'\0\0[\x01\x02]\0',
    'XCF, DDS, QOI, EXR, HDR or FITS': (
        rb'gimp xcf|DDS |qoif|v/1\x01|#\?RADIANCE|SIMPLE  ='
    ),
    'DICOM': rb'.{128}DICM',
    'PDF': rb'%PDF',
    'PostScript (EPS)': rb'%!PS|\xc5\xd0\xd3\xc6',
    'SVG or XML': rb'\s*<(svg|\?xml|!--|!doctype svg)',
    'a zip archive': rb'PK\x03\x04',
    'a variant of TIFF': rb'II[*+]\0|MM\0[*+]',
}


def describe_format(start: bytes) -> str:
    """Name an unsupported format and a remedy, from at least 132 bytes."""
    content = start.removeprefix(b'\xef\xbb\xbf')
    for file_format, pattern in _KINDS.items():
        if re.match(pattern, content, re.DOTALL | re.IGNORECASE):
            advice = _OTHER_ADVICE.get(file_format.split()[-1], _ADVICE)
            return f'{file_format}: {advice}'
    if description := match_kind(content):
        return f'not an image but {description}'
    return f'not an image: it begins with {start[:12]!r}'


def is_raw(start: bytes, tags: Mapping) -> bool:
    """Return whether a TIFF file is a camera RAW file (DNG, NEF, ARW, CR2).

    ``tags`` are the tags of its first image, in RAW files a small preview.
    """
    # 254: reduced-size image, 330: further images, 50706: DNG version
    is_preview = tags.get(254, 0) & 1 and 330 in tags
    return start[8:10] == b'CR' or 50706 in tags or bool(is_preview)
