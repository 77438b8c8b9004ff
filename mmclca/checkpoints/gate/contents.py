# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Recognize the checkpoint format and limit the size in memory.

The format is recognized by content: a ``.pth`` file may be in safetensors
format, or a saved web page.
"""

import os
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor
from torch.nn.modules import module as registration

from mmclca.errors import Error
from mmclca.utils.file_kinds import DOWNLOAD, UNPACK, match_kind
from mmclca.utils.meta_device import on_meta_device

from ..error import CheckpointError

SAVE = "save the model's state dict with torch.save and use that file"
# patterns for the first bytes, format, and remedy
OTHER_FORMATS = (
    (rb'[\xef\xbb\xbf\xff\xfe]*\s*<', 'XML text, not weights', DOWNLOAD),
    (rb'[\xef\xbb\xbf]*\s*[\[{]', 'JSON text, not weights', DOWNLOAD),
    (rb'[\t\r\n -~]{16,}$', 'text, not weights', DOWNLOAD),
    (rb'\x89HDF', 'an HDF5 file, as Keras writes it', SAVE),
    (rb'\x08[\x01-\x20][\x12\x3a\x42]', 'an ONNX model', SAVE),
    (rb'.{4}TFL3|GGUF|\x93NUMPY', 'a TFLite, GGUF or NumPy file', SAVE),
    (rb'\xff\xd8\xff|\x89PNG|GIF8|RIFF|%PDF', 'an image', 'use a weight file'),
)


def recognize_format(path: str, name: str) -> str:
    """Return 'safetensors', 'npz' or 'pickle', the last if unrecognized.

    Raises:
        CheckpointError: If the file, called ``name``, is recognized as
            another format, such as an image or a web page.
    """
    with open(path, 'rb') as file:
        head = file.read(512)
    if head[8:9] == b'{' and int.from_bytes(head[:8], 'little') < 1e8:
        return 'safetensors'
    if head.startswith(b'PK') and zipfile.is_zipfile(path):
        return _recognize_zip(path, name)
    other_format = match_kind(head) or match_kind(head, OTHER_FORMATS)
    if other_format:
        raise CheckpointError(f'{name} is {other_format}')
    if _is_tar(path):
        # before 2.6, torch unpickles the files inside without restrictions
        raise CheckpointError(f'{name} is a tar archive: {UNPACK}')
    return 'pickle'


def _is_tar(path: str) -> bool:
    """Return whether a file is an archive of any kind of tar."""
    try:
        tarfile.open(path, 'r:').close()
    except tarfile.TarError:
        return False
    return True


def _recognize_zip(path: str, name: str) -> str:
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    endings = {entry.rpartition('/')[2] for entry in names}
    if 'constants.pkl' in endings:
        raise CheckpointError(f'{name} is a TorchScript archive: {SAVE}')
    if 'data.pkl' in endings:
        return 'pickle'
    if any(entry.endswith('.npy') for entry in names):
        return 'npz'
    examples = ', '.join(names[:3])
    raise CheckpointError(f'{name} is a zip archive with {examples}: {UNPACK}')


def unpacked_size(path: str) -> int:
    """Return the unpacked file size in bytes.

    Raises:
        Error: If it is more than ten times the file size.
    """
    size = os.path.getsize(path)
    if not zipfile.is_zipfile(path):
        return size
    with zipfile.ZipFile(path) as archive:
        parts = sum(entry.file_size for entry in archive.infolist())
    if parts > 10 * size + 2**20:
        raise Error(
            f'the contents unpack to {parts / 1e9:.2g} GB, more than ten '
            'times the file size'
        )
    return max(size, parts)


def check_tensors(weights: dict, size: int) -> None:
    """Refuse small tensors expanded to a huge shape by their strides.

    Raises:
        Error: If all tensors together would take more than 16 MB plus
            four times ``size``, the unpacked file size in bytes.
    """
    tensors = [x for x in weights.values() if isinstance(x, Tensor)]
    copied = sum(x.numel() * x.element_size() for x in tensors)
    if copied > 4 * size + 2**24:
        raise Error(
            f'the tensors would take {copied / 1e9:.2g} GB, but the file '
            f'stores only {size / 1e6:.2g} MB of numbers'
        )


@contextmanager
def building_within(weights: dict[str, Tensor], name: str) -> Iterator[None]:
    """Build modules on the meta device, with a size limited by weights.

    Modules may have about twice as many parameters as ``weights``, to allow
    for a new head and buffers, and ten times as many tensors, to allow for
    merged branches. Errors name the file, ``name``.

    Raises:
        CheckpointError: If the modules are larger or cannot be built.
    """
    sizes = [x.numel() for x in weights.values() if isinstance(x, Tensor)]
    left = [2 * sum(sizes) + 2**22, 10 * len(sizes) + 1000]

    def count(module, key, tensor):
        if tensor is not None:
            left[0] -= tensor.numel()
            left[1] -= 1
        if min(left) < 0:
            raise CheckpointError(
                f'the config in {name} describes a larger model than the '
                f'stored weights ({sum(sizes)} numbers in {len(sizes)} '
                'tensors); use the config of its training'
            )

    handles = [
        registration.register_module_parameter_registration_hook(count),
        registration.register_module_buffer_registration_hook(count),
    ]
    try:
        with on_meta_device():
            yield
    except CheckpointError:
        raise
    except Exception as error:  # constructors may raise anything
        raise CheckpointError(
            f'cannot build the model of the config in {name} '
            f'({type(error).__name__}: {error}); use the config of its '
            'training'
        ) from error
    finally:
        for handle in handles:
            handle.remove()
