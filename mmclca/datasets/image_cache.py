# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Cache decoded images of a dataset in a file shared by its workers.

The unnamed file is deleted by the system when the last process ends, even if
it is killed.
"""

import logging
import os
import pickle
import tempfile
from contextlib import suppress
from hashlib import blake2b
from io import FileIO
from struct import Struct
from zlib import crc32

import numpy as np
from mmcv.transforms import BaseTransform
from mmengine.dataset import Compose
from mmengine.logging import print_log

from mmclca.errors import Error
from mmclca.registry import TRANSFORMS
from mmclca.utils.messages import check_integer

_HEAD = Struct('>16sQI')  # key, size and checksum, before each image
_FULL = 0o700  # this file mode tells all workers to add no more images


@TRANSFORMS.register_module()
class CacheImages(BaseTransform):
    """Run the first steps of a pipeline once per image and cache the result.

    The decoded and resized images are kept in a file, which the system holds
    in memory as far as it can. All workers of a data loader share the file;
    it is deleted when they end. The pixels equal the result of the steps, bit
    for bit. An image is read again if its file changes.

    Place it first in the pipelines of training and validation::

        dict(type='mmclca.CacheImages',
             transforms=[dict(type='LoadImageFromFile'), resize])

    If an image cannot be cached (full disk, read-only folder, remote file),
    the steps run in every epoch.

    Args:
        transforms (list[dict]): Configs of the steps. They must read only
            ``img_path`` and not be random.
        disk_mb (int): Maximum size of the file in MiB; 0 disables the cache.
            Defaults to 4096. The file is in the folder for temporary files,
            which the environment variable ``TMPDIR`` sets.

    Raises:
        Error: If a step is random or the limit negative.
    """

    def __init__(self, transforms: list[dict], disk_mb: int = 4096):
        super().__init__()
        check_integer(minimum=0, disk_mb=disk_mb)
        self.disk_mb = disk_mb
        self.steps = Compose([TRANSFORMS.build(step) for step in transforms])
        random = [
            type(step).__name__
            for step in self.steps.transforms
            if 'Random' in type(step).__name__
            or hasattr(step, '_methods_with_randomness')  # of torchvision
        ]
        if random:
            raise Error(
                f'CacheImages: {", ".join(random)} would give the same random '
                'result in every epoch; move it after CacheImages'
            )
        self.store, folder = None, tempfile.gettempdir()
        try:
            if disk_mb:
                self.store = ImageStore(folder, disk_mb << 20)
        except OSError as error:
            _warn(f'cannot cache images in {folder}: {error}')

    def transform(self, results):
        """Add the image to a sample.

        Args:
            results (dict): A sample with ``img_path``.

        Returns:
            dict | None: Result of the steps.
        """
        key = self.store and file_key(results['img_path'])
        if not key:
            return self.steps(results)
        if cached := self.store.get(key):
            return results | cached
        prepared = self.steps(dict(results))
        if prepared is None:  # steps may drop a sample
            return None
        if not isinstance(prepared.get('img'), np.ndarray):
            raise Error(
                'CacheImages: the transforms must end with an image (`img`), '
                f'but they return {sorted(prepared)}; move transforms such as '
                'PackInputs after CacheImages'
            )
        # values of the sample, such as its label, may differ next time
        new = {
            name: value
            for name, value in prepared.items()
            if name not in results or value is not results[name]
        }
        if problem := self.store.put(key, new):
            _warn(
                f'caching in {self.store.folder} stopped ({problem}); other '
                'images are decoded in every epoch'
            )
        return prepared

    def __repr__(self):
        limit = f'disk_mb={self.disk_mb}'
        return f'{type(self).__name__}({limit}, steps={self.steps})'


def _warn(message):
    print_log(f'CacheImages: {message}.', 'current', logging.WARNING)


def file_key(path: str) -> bytes | None:
    """Hash the path and state of a file to 16 bytes.

    The key changes when the file is written or replaced. Missing and remote
    files, whose changes cannot be detected, have the key None.
    """
    try:
        status = os.stat(path)
    except OSError:
        return None
    state = status.st_ino, status.st_size, status.st_mtime_ns
    state_text = repr((os.path.abspath(path), *state, status.st_ctime_ns))
    return blake2b(state_text.encode(), digest_size=16).digest()


class ImageStore:
    """Images in an unnamed file to which several processes append.

    Forked processes inherit the file. Others open it through ``/proc``, or
    create their own.

    Args:
        folder (str | Path): Folder of the file.
        limit (int): Maximum size of the file in bytes.
        path (str): Path of an open file to share. Defaults to '': a new file.
        inode (int): Inode of the shared file. Defaults to 0.

    Raises:
        OSError: If the folder is not writable.
    """

    def __init__(self, folder, limit: int, path: str = '', inode: int = 0):
        self.folder, self.limit = folder, limit
        self.records, self.end = {}, 0
        with suppress(OSError):
            self.file = FileIO(path, 'a+')
            if os.fstat(self.file.fileno()).st_ino == inode:
                return
        with tempfile.NamedTemporaryFile(dir=folder) as named:
            self.file = FileIO(named.name, 'a+')

    def __reduce__(self):
        number = self.file.fileno()
        path = f'/proc/{os.getpid()}/fd/{number}'
        inode = os.fstat(number).st_ino
        return type(self), (self.folder, self.limit, path, inode)

    def get(self, key: bytes) -> dict | None:
        """Read the values of an image; None if missing or damaged."""
        try:
            if key not in self.records:
                self._scan()
            start, size, checksum = self.records.pop(key, (0, 0, None))
            content = os.pread(self.file.fileno(), size, start)
        except OSError:  # disk failure
            return None
        if crc32(content) != checksum:
            return None
        self.records[key] = start, size, checksum
        return pickle.loads(content)  # safe: only our workers write the file

    def _scan(self) -> None:
        """Find the images added since the last call."""
        number = self.file.fileno()
        end = os.fstat(number).st_size
        while self.end + _HEAD.size <= end:
            head = os.pread(number, _HEAD.size, self.end)
            key, size, checksum = _HEAD.unpack(head)
            start = self.end + _HEAD.size
            if start + size > end:  # not completely written yet
                return
            self.records[key] = start, size, checksum
            self.end = start + size

    def put(self, key: bytes, values: dict) -> object:
        """Append the values of an image.

        Returns:
            object: Reason why caching stops, for the first process to
            notice; else an empty string.
        """
        number = self.file.fileno()
        status = os.fstat(number)
        if status.st_mode & _FULL == _FULL:
            return ''
        content = pickle.dumps(values, protocol=5)
        content = _HEAD.pack(key, len(content), crc32(content)) + content
        has_room = status.st_size + len(content) <= self.limit
        problem = f'disk_mb={self.limit >> 20} is reached or the disk is full'
        try:
            # one call, so that writes of several processes do not mix
            if has_room and os.write(number, content) == len(content):
                return ''
        except OSError as error:
            problem = error
        os.fchmod(number, _FULL)
        return problem
