# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Checksums (CRC-32) of tensors and facts in files.

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


def seal(facts: dict) -> dict:
    """Add the checksum of plain values."""
    return {**facts, KEY: _of_facts(facts)}


def check_seal(sealed: dict) -> None:
    """Raise ``Error`` if values differ from :func:`seal`, if sealed."""
    if sealed.get(KEY, _of_facts(sealed)) != _of_facts(sealed):
        raise Error(f'the content {WRONG}')


def _of_facts(facts: Mapping) -> int:
    own = {name: fact for name, fact in facts.items() if name != KEY}
    return zlib.crc32(json.dumps(own, sort_keys=True).encode())


def of_tensor(tensor: Tensor, start: int = 0) -> int:
    """Return the checksum of the numbers of a tensor."""
    numbers = tensor.detach().contiguous().flatten()
    return zlib.crc32(numbers.view(torch.uint8).numpy(), start)


def _sums(tensors: Mapping[str, Tensor], metadata: Mapping) -> dict[str, int]:
    sums = {METADATA: _of_facts(metadata)}
    for name, tensor in tensors.items():
        form = f'{tensor.dtype} {tuple(tensor.shape)}'.encode()
        sums[name] = of_tensor(tensor, zlib.crc32(form))
    return sums


def save_tensors(
    tensors: dict[str, Tensor], metadata: dict[str, str] = {}
) -> bytes:
    """Return a file in safetensors format with checksums.

    Equal tensors and metadata give equal bytes; the library writes metadata
    in random order.
    """
    content = safetensors.torch.save(tensors)
    end = _end_of_header(content)
    sums = json.dumps(_sums(tensors, metadata), sort_keys=True)
    header = {METADATA: {**metadata, KEY: sums}} | json.loads(content[8:end])
    text = json.dumps(header).encode()
    text += b' ' * (-len(text) % 8)  # tensors start at a multiple of 8
    return len(text).to_bytes(8, 'little') + text + content[end:]


def _end_of_header(content: bytes) -> int:
    return 8 + int.from_bytes(content[:8], 'little')


def load_tensors(content: bytes) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read tensors and metadata of a file in safetensors format.

    Raises:
        SafetensorError: If the file has another format.
        Error: If a tensor is damaged, see :func:`check`.
    """
    tensors = safetensors.torch.load(content)
    header = json.loads(content[8 : _end_of_header(content)])
    metadata = header.get(METADATA, {})
    check(tensors, metadata)
    return tensors, metadata


def check(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Compare tensors and metadata with their checksums, if there are any.

    Raises:
        Error: Names the first damaged tensor.
    """
    if KEY in metadata:
        stored, found = json.loads(metadata[KEY]), _sums(tensors, metadata)
        for name in {**stored, **found}:
            if stored.get(name) != found.get(name):
                raise Error(f'{name} {WRONG}')


def has_sums(path: str | PathLike) -> bool:
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


def damaged_entry(path: str) -> str | None:
    """Return the name of the first damaged file in a zip archive, or None."""
    if not has_sums(path):
        return None
    with zipfile.ZipFile(path) as archive:
        return archive.testzip()
