# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""How one image lies in a file of images: a head, a description, pixels.

Everything is read by position and checked, rather than mapped: where another
process cuts the file, a mapping would end the run with SIGBUS.
"""

import os
from ast import literal_eval
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple
from zlib import crc32

import numpy as np

_MAGIC = b'leaf'
_HEAD = Struct('<4s16sIQI')  # magic, key, sizes of both parts, check sum


class Place(NamedTuple):
    """Where an image lies in a file.

    Args:
        start (int): Position of its description.
        described (int): Bytes of the description.
        pixels (int): Bytes of the pixels, which follow it.
        check (int): CRC-32 of both.
    """

    start: int
    described: int
    pixels: int
    check: int

    @property
    def begin(self) -> int:
        return self.start - _HEAD.size

    @property
    def end(self) -> int:
        return self.start + self.described + self.pixels


def pack(key: bytes, image: np.ndarray, more: dict) -> bytes:
    """Write an image as bytes.

    Args:
        key (bytes): What it is found by, 16 bytes.
        image (np.ndarray): Its pixels, of any shape and number format.
        more (dict): Plain Python values that belong to it.

    Returns:
        bytes: What :func:`scan` finds and :func:`read` reads.
    """
    described = repr((image.shape, image.dtype.str, more)).encode()
    pixels = image.tobytes()
    check = crc32(pixels, crc32(described))
    head = _HEAD.pack(_MAGIC, key, len(described), len(pixels), check)
    return b''.join([head, described, pixels])


def scan(file: int, start: int, end: int) -> Iterator[tuple[bytes, Place]]:
    """List the whole images in a part of a file, reading their heads only.

    Args:
        file (int): Its descriptor.
        start (int): Where an image begins.
        end (int): The size of the file.

    Yields:
        tuple[bytes, Place]: Key and place of each, up to the end or to the
        first that is damaged or was not written to its end.
    """
    while start + _HEAD.size <= end:
        head = os.pread(file, _HEAD.size, start)
        magic, key, *sizes = _HEAD.unpack(head)
        place = Place(start + _HEAD.size, *sizes)
        if magic != _MAGIC or place.end > end:
            return
        yield key, place
        start = place.end


def read(file: int, place: Place) -> tuple[np.ndarray, dict] | None:
    """Read an image.

    Args:
        file (int): Descriptor of the file.
        place (Place): Where it lies.

    Returns:
        tuple[np.ndarray, dict] | None: Its pixels, a copy of one's own, and
        the values that belong to it; None where it is damaged.
    """
    described = bytearray(place.described)
    pixels = np.empty(place.pixels, np.uint8)
    size = os.preadv(file, [described, pixels], place.start)
    whole = size == place.described + place.pixels
    if not whole or crc32(pixels, crc32(described)) != place.check:
        return None
    shape, dtype, more = literal_eval(described.decode())
    return pixels.view(dtype).reshape(shape), more
