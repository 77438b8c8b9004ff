# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Decoded images of a dataset, in a file that its workers share.

The file has no name, so the system deletes it when the last process that has
it open ends, however that ends.
"""

import logging
import os
import pickle
import shutil
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

from mmclca.registry import TRANSFORMS
from mmclca.utils.messages import integer

_HEAD = Struct('>16sQI')  # key, size and checksum, before each image
_FULL = 0o700  # mode of the file that says so to all workers
_SPARE = 0.1  # share of the file system that always stays free


@TRANSFORMS.register_module()
class CacheImages(BaseTransform):
    """The first steps of a pipeline, done once for each image.

    Small datasets are read again in each epoch. The image that the first
    steps give (decoded and resized, before anything random) is kept in a
    file; later epochs read it from there, which is from memory as far as the
    system has room for it. The workers of a data loader share the file, which
    is deleted when they end. The pixels are those of the steps, bit for bit.
    An image whose file has changed is read again.

    It stands first in the pipelines of training and validation::

        dict(type='mmclca.CacheImages',
             transforms=[dict(type='LoadImageFromFile'), resize])

    Images that cannot be kept (a full disk, a folder that cannot be written
    to, no file on this machine) go through the steps each time.

    Args:
        transforms (list[dict]): Configs of the steps, which may read nothing
            of a sample but its ``img_path``, and draw nothing at random.
        disk_mb (int): Most MiB of the file; a tenth of the disk stays free.
            Defaults to 4096; 0: nothing is kept.
        folder (str, optional): Where they are kept. Defaults to the system's
            folder for temporary files (``TMPDIR``).

    Raises:
        ValueError: If a step is random or the limit negative.
    """

    def __init__(self, transforms, disk_mb=4096, folder=None):
        super().__init__()
        integer(least=0, disk_mb=disk_mb)
        self.disk_mb = disk_mb
        self.steps = Compose([TRANSFORMS.build(step) for step in transforms])
        _check_steps(self.steps.transforms)
        self.store, folder = None, folder or tempfile.gettempdir()
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
            dict | None: What the steps return.
        """
        key = self.store and key_of(results['img_path'])
        if not key:
            return self.steps(results)
        found = self.store.get(key)
        if found:
            return results | found
        before = dict(results)
        after = self.steps(results)
        if after is not None:  # the steps may drop a sample
            problem = self.store.put(key, _what_is_new(before, after))
            if problem:
                _warn(
                    f'caching in {self.store.folder} stopped ({problem}); '
                    'other images are decoded in every epoch'
                )
        return after

    def __repr__(self):
        limit = f'disk_mb={self.disk_mb}'
        return f'{type(self).__name__}({limit}, steps={self.steps})'


def _warn(message):
    print_log(f'CacheImages: {message}.', 'current', logging.WARNING)


def _check_steps(steps):
    """Refuse random transforms of mmcv and torchvision."""
    random = [
        type(step).__name__
        for step in steps
        if 'Random' in type(step).__name__
        or hasattr(step, '_methods_with_randomness')
    ]
    if random:
        raise ValueError(
            f'CacheImages: {", ".join(random)} would give the same random '
            'result in every epoch; move it after CacheImages'
        )


def _what_is_new(before: dict, after: dict) -> dict:
    """Return the image and the other values set by the steps.

    Raises:
        ValueError: If there is no image.
    """
    # `before` is in no sample, so it stands for a missing value
    new = {k: v for k, v in after.items() if before.get(k, before) is not v}
    if not isinstance(new.get('img'), np.ndarray):
        raise ValueError(
            'CacheImages: the transforms must end with an image (`img`), but '
            f'they set {sorted(new)}; move transforms such as PackInputs '
            'after CacheImages'
        )
    return new


def key_of(path: str) -> bytes | None:
    """Name an image; the name changes when its file is written or
    replaced.

    Returns:
        bytes | None: 16 bytes; None where there is no file of which a change
        could be seen: it is missing, or on another machine.
    """
    try:
        status = os.stat(path)
    except OSError:
        return None
    state = status.st_ino, status.st_size, status.st_mtime_ns
    text = repr((os.path.abspath(path), *state, status.st_ctime_ns))
    return blake2b(text.encode(), digest_size=16).digest()


class ImageStore:
    """Images in a file to which several processes append.

    Forked processes inherit the file; others open it by the descriptor of the
    process that started them, or, where that is not possible, their own.

    Args:
        folder (str | Path): Folder of the file.
        limit (int): Maximum size of the file in bytes.
        path (str): Path of an open file to share. Defaults to '': a new file.
        inode (int): Inode of that file. Defaults to 0.

    Raises:
        OSError: If the folder cannot be written to.
    """

    def __init__(self, folder, limit: int, path: str = '', inode: int = 0):
        self.folder, self.limit = folder, limit
        self.places, self.end = {}, 0
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
        """Read an image and what belongs to it, see :meth:`put`.

        Returns:
            dict | None: Values that the caller may change; None if the image
            is missing or damaged.
        """
        try:
            if key not in self.places:
                self._find_new()
            start, size, checksum = self.places.pop(key, (0, 0, None))
            content = os.pread(self.file.fileno(), size, start)
        except OSError:  # the disk failed
            return None
        if crc32(content) != checksum:
            return None
        self.places[key] = start, size, checksum
        return pickle.loads(content)  # of the workers: no others have the file

    def _find_new(self) -> None:
        """Find the images that were added since the last call."""
        number = self.file.fileno()
        end = os.fstat(number).st_size
        while self.end + _HEAD.size <= end:
            head = os.pread(number, _HEAD.size, self.end)
            key, size, checksum = _HEAD.unpack(head)
            start = self.end + _HEAD.size
            if start + size > end:  # still being written
                return
            self.places[key] = start, size, checksum
            self.end = start + size

    def put(self, key: bytes, values: dict) -> object:
        """Add an image and its values.

        Returns:
            object: Why caching stops, in the first process to notice; else
            an empty string.
        """
        number = self.file.fileno()
        status, disk = os.fstat(number), shutil.disk_usage(number)
        if status.st_mode & _FULL == _FULL:
            return ''
        content = pickle.dumps(values, protocol=5)
        content = _HEAD.pack(key, len(content), crc32(content)) + content
        free = disk.free - _SPARE * disk.total
        room = min(self.limit - status.st_size, free) - len(content)
        problem = f'disk_mb={self.limit >> 20} is reached or the disk is full'
        try:
            # one call, so that writes of several processes do not mix
            if room >= 0 and os.write(number, content) == len(content):
                return ''
        except OSError as error:
            problem = error
        os.fchmod(number, _FULL)
        return problem
