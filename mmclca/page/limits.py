# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Limits of uploads to the page."""

import shutil
from pathlib import Path

from mmclca.languages import text

MIB = 2**20
MEGABYTES = 50  # per photo, and per request other than uploads
# of the photos of a fit: a folder or an unpacked ZIP; and of all uploads
MAX_MEGABYTES, MAX_FILES = 4000, 10_000
FREE_MEGABYTES = 1000  # for the model and its training


def why_full(folder: Path, size: int) -> str:
    """Return why a folder has no space for more bytes, or an empty text."""
    free, needed = shutil.disk_usage(folder).free, size + FREE_MEGABYTES * MIB
    if free >= needed:
        return ''
    return text(
        'page.disk_full',
        free=f'{free / MIB:,.0f}',
        needed=f'{needed / MIB:,.0f}',
    )
