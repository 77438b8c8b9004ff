# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Checksums (CRC-32) of tensors and plain values in files.

``torch.save`` stores one per tensor, as in any zip archive, but ``torch.load``
does not compare it. Files in safetensors format have theirs in the metadata.
"""

import json
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from os import PathLike
from pathlib import Path

import safetensors.torch
import torch
from torch import Tensor

from mmclca.errors import Error

KEY, METADATA = 'crc32', '__metadata__'
WRONG = 'does not match its checksum'


def add_checksum(content: dict) -> dict:
    """Add the checksum of plain values."""
    return {**content, KEY: _compute_for_values(content)}


def verify_checksum(content: dict) -> None:
    """Raise ``Error`` if values differ from their checksum.

    Without a checksum, nothing is compared.
    """
    computed = _compute_for_values(content)
    if content.get(KEY, computed) != computed:
        raise Error(f'the content {WRONG}')


def _compute_for_values(content: Mapping) -> int:
    """Return the checksum of plain values, without a stored one."""
    values = {name: value for name, value in content.items() if name != KEY}
    return zlib.crc32(json.dumps(values, sort_keys=True).encode())


def compute_checksum(tensor: Tensor, start: int = 0) -> int:
    """Return the checksum of the numbers of a tensor."""
    numbers = tensor.detach().contiguous().flatten()
    return zlib.crc32(numbers.view(torch.uint8).numpy().data, start)


def _compute_checksums(
    tensors: Mapping[str, Tensor], metadata: Mapping
) -> dict[str, int]:
    checksums = {METADATA: _compute_for_values(metadata)}
    for name, tensor in tensors.items():
        form = f'{tensor.dtype} {tuple(tensor.shape)}'.encode()
        checksums[name] = compute_checksum(tensor, zlib.crc32(form))
    return checksums


def save_tensors(
    tensors: dict[str, Tensor], metadata: dict[str, str] = {}
) -> bytes:
    """Return a file in safetensors format with checksums.

    Equal tensors and metadata give equal bytes; the library writes metadata
    in random order.
    """
    content = safetensors.torch.save(tensors)
    end = _end_of_header(content)
    checksums = json.dumps(
        _compute_checksums(tensors, metadata), sort_keys=True
    )
    extended = {**metadata, KEY: checksums}
    header = json.dumps({METADATA: extended} | json.loads(content[8:end]))
    encoded = header.encode()
    encoded += b' ' * (-len(encoded) % 8)  # tensors start at a multiple of 8
    return len(encoded).to_bytes(8, 'little') + encoded + content[end:]


def _end_of_header(content: bytes) -> int:
    return 8 + int.from_bytes(content[:8], 'little')


def load_tensors(content: bytes) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read tensors and metadata of a file in safetensors format.

    Raises:
        SafetensorError: If the file has another format.
        Error: If a tensor is damaged, see :func:`verify_tensors`.
    """
    try:
        tensors = safetensors.torch.load(content)
    except ValueError as error:  # an empty tensor, for early versions
        raise Error(str(error)) from error
    header = json.loads(content[8 : _end_of_header(content)])
    metadata = header.get(METADATA, {})
    verify_tensors(tensors, metadata)
    return tensors, metadata


def verify_tensors(
    tensors: Mapping[str, Tensor], metadata: Mapping[str, str]
) -> None:
    """Compare tensors and metadata with their checksums, if there are any.

    Raises:
        Error: Names the first damaged tensor.
    """
    if KEY not in metadata:
        return
    try:
        stored = json.loads(metadata[KEY])
    except (RecursionError, ValueError) as error:
        raise Error(f'{METADATA} {WRONG}') from error
    if not isinstance(stored, dict):
        raise Error(f'{METADATA} {WRONG}')
    computed = _compute_checksums(tensors, metadata)
    for name in {**stored, **computed}:
        if stored.get(name) != computed.get(name):
            raise Error(f'{name} {WRONG}')


def has_checksums(path: str | PathLike) -> bool:
    """Return whether a file stores checksums of its contents."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            # all are zero if torch was told to write none
            return any(entry.CRC for entry in archive.infolist())
    content = Path(path).read_bytes()
    with suppress(ValueError):  # not plain values
        return KEY in json.loads(content)
    with suppress(ValueError):  # not in safetensors format
        header = json.loads(content[8 : _end_of_header(content)])
        return KEY in header.get(METADATA, {})
    return False


def find_damaged_entry(path: str) -> str | None:
    """Return the name of the first damaged file in a zip archive, or None."""
    if not has_checksums(path):
        return None
    with zipfile.ZipFile(path) as archive:
        return archive.testzip()
