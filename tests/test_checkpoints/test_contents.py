# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Recognize the checkpoint format by content."""

import gzip
import io
import tarfile
import zipfile

import pytest
import torch
from safetensors.torch import save

from mmclca.checkpoints.error import CheckpointError
from mmclca.checkpoints.opening import open_checkpoint


def pickled(value=None):
    buffer = io.BytesIO()
    torch.save(value or {'a': torch.ones(2)}, buffer)
    return buffer.getvalue()


def zipped(name):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, 'w') as archive:
        archive.writestr(name, pickled())
    return buffer.getvalue()


def tarred():
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode='w') as archive:
        archive.addfile(tarfile.TarInfo('a.pth'))
    return buffer.getvalue()


def tarred_by_version_7():
    """Return an archive in the first format, without a magic number."""
    data = bytearray(tarred())
    data[257:265] = bytes(8)
    data[148:156] = b' ' * 8
    data[148:156] = b'%06o\0 ' % sum(data[:512])
    return bytes(data)


def script():
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(torch.nn.ReLU()), buffer)
    return buffer.getvalue()


OTHERS = {
    'LFS': lambda: b'version https://git-lfs.github.com/spec/v1\noid sha256:',
    'annex': lambda: b'/annex/objects/MD5-s5--1234\n',
    'web page': lambda: b'\n<!DOCTYPE html><html>Sign in</html>',
    'JSON': lambda: b'{"error": "Repository not found"}',
    'text': lambda: b'404: Not Found, or moved to another place\n',
    'gzip': lambda: gzip.compress(pickled()),
    'tar': tarred,
    'a tar archive': tarred_by_version_7,
    '7z': lambda: b'7z\xbc\xaf\x27\x1c' + bytes(30),
    'HDF5': lambda: b'\x89HDF\r\n\x1a\n' + bytes(30),
    'ONNX': lambda: b'\x08\n\x12\x07pytorch\x1a\x052.4.0',
    'image': lambda: b'\x89PNG\r\n\x1a\n' + bytes(30),
    'TorchScript': script,
    r'zip archive with best\.pth': lambda: zipped('best.pth'),
    'incomplete': lambda: b'',
    'central directory': lambda: pickled()[:-200],
}


@pytest.mark.parametrize('kind', OTHERS)
def test_file_is_refused_in_one_line_without_weights(kind, tmp_path):
    path = tmp_path / 'w.npz'
    path.write_bytes(OTHERS[kind]())
    with pytest.raises(CheckpointError, match=kind) as error:
        open_checkpoint(str(path))
    assert '\n' not in str(error.value)


@pytest.mark.parametrize('ending', ['safetensors', 'npz', 'x'])
@pytest.mark.parametrize('data', [pickled(), save({'a': torch.ones(2)})])
def test_weights_are_loaded_if_extension_is_wrong(data, ending, tmp_path):
    path = tmp_path / f'w.{ending}'
    path.write_bytes(data)
    assert open_checkpoint(str(path)).weights['a'].tolist() == [1, 1]
