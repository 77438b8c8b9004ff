# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Recognize pointers, web pages and archives in place of a data file."""

import re

UNPACK = 'unpack it and use the file inside'
DOWNLOAD = (
    'download the file itself (Hugging Face: /resolve/ instead of /blob/ in '
    'the URL)'
)
_PAGE = rb'(?i)[\xef\xbb\xbf\xff\xfe]*\s*<(!doctype html|html|head|body)'
# patterns for the first bytes, kind of file, and remedy
_KINDS = (
    (rb'version https://git-lfs', 'a Git LFS pointer', 'run "git lfs pull"'),
    (rb'[./]*(git/)?annex/', 'a git-annex pointer', 'run "git annex get"'),
    (_PAGE, 'a web page', DOWNLOAD),
    (rb'\x1f\x8b', 'a gzip archive', UNPACK),
    (rb'BZh\d|\xfd7zXZ|\x28\xb5\x2f\xfd', 'a compressed file', UNPACK),
    (rb'7z\xbc\xaf|Rar!|.{257}ustar', 'an archive (7z, RAR or tar)', UNPACK),
)


def match_kind(start: bytes, kinds: tuple = _KINDS) -> str | None:
    """Describe a file by its first bytes, with the remedy.

    Args:
        start (bytes): First bytes, 512 if the file has as many.
        kinds (tuple): Patterns, kinds and remedies. Defaults to pointers, web
            pages and archives.

    Returns:
        str | None: None if no pattern matches.
    """
    for pattern, description, remedy in kinds:
        if re.match(pattern, start, re.DOTALL):
            return f'{description}: {remedy}'
    return None
