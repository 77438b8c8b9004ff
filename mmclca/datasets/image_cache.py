# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Images that processes share, in a folder as long as one of them runs.

A process that uses the folder holds a shared lock on a file beside it. The
system releases a lock when its process ends, however it ends, so a folder
that nobody locks is left over and can be deleted.
"""

import fcntl
import json
import logging
import os
import shutil
import tempfile
from ast import literal_eval
from contextlib import suppress
from hashlib import blake2b
from io import BytesIO
from multiprocessing.util import Finalize
from pathlib import Path
from zlib import crc32

import cv2
import mmcv
import numpy as np
import PIL
from mmcv.transforms import BaseTransform
from mmengine.dataset import Compose
from mmengine.logging import print_log

from mmclca.registry import TRANSFORMS
from mmclca.utils.files import open_file, replace_bytes

_CHECKSUM = 4  # bytes before the content of a file, to find damage
_SPARE = 0.1  # share of the file system that always stays free


@TRANSFORMS.register_module()
class CacheImages(BaseTransform):
    """The first steps of a pipeline, done once for each image.

    Small sets are read again in each epoch. The image that the first steps
    give (decoded and resized, before anything random) is kept in a file;
    later epochs read it from there, which is from memory as far as the system
    has room for it. All workers and processes of a machine share what is
    kept, in whatever way they were started, and it is deleted when the last
    of them ends. The pixels are those of the steps, bit for bit. An image
    whose file has changed is read again.

    It stands first in the pipelines of training and validation::

        dict(type='mmclca.CacheImages',
             transforms=[dict(type='LoadImageFromFile'), resize])

    Images that cannot be kept (a full disk, a folder that cannot be written
    to, no file on this machine) go through the steps each time.

    Args:
        transforms (list[dict]): Configs of the steps, which may read nothing
            of a sample but its ``img_path``, and draw nothing at random.
        disk_mb (int): Most MiB, for all images that these steps give on this
            machine; a tenth of the disk stays free. Defaults to 4096; 0:
            nothing is kept.
        folder (str, optional): Where they are kept. Defaults to the system's
            folder for temporary files (``TMPDIR``).

    Raises:
        ValueError: If a step is random or the limit negative.
    """

    def __init__(self, transforms, disk_mb=4096, folder=None):
        super().__init__()
        if disk_mb < 0:
            raise ValueError(f'CacheImages: disk_mb={disk_mb}: from 0 on')
        self.arguments = transforms, disk_mb, folder
        self.steps = Compose([TRANSFORMS.build(step) for step in transforms])
        _check_steps(self.steps.transforms)
        self.warned = False
        self.store = None
        parent = Path(folder or tempfile.gettempdir())
        try:
            if disk_mb:
                name = steps_key(transforms)
                self.store = ImageStore(parent, name, disk_mb << 20)
        except OSError as error:
            _warn(f'no images are kept in {parent}: {error}')

    def __reduce__(self):
        return type(self), self.arguments  # a spawned worker opens its own

    def transform(self, results):
        """Give a sample its image.

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
            image, more = found
            return dict(results, **more, img=image)
        before = dict(results)
        after = self.steps(results)
        if after is not None:  # else an image that the steps leave out
            self._keep(key, *_what_is_new(before, after))
        return after

    def _keep(self, key, image, more):
        try:
            kept = self.store.put(key, image, more)
            problem = f'disk_mb={self.arguments[1]} or the disk is full'
        except OSError as error:
            self.store.limit, kept, problem = 0, False, error
        if not kept:
            self._warn_once(
                f'no more images are kept in {self.store.folder} ({problem}); '
                'others are decoded in each epoch'
            )

    def _warn_once(self, message):
        """Warn, in one process of those that share the images."""
        flag = self.store.folder / 'warned'
        if self.warned or flag.exists():
            return
        self.warned = True
        with suppress(OSError):  # better twice than never
            flag.touch()
        _warn(message)

    def __repr__(self):
        limit = f'disk_mb={self.arguments[1]}'
        return f'{type(self).__name__}({limit}, steps={self.steps})'


def _warn(message):
    print_log(f'CacheImages: {message}.', 'current', logging.WARNING)


def _check_steps(steps):
    """Refuse what mmcv marks as random, or torchvision calls so."""
    random = [
        type(step).__name__
        for step in steps
        if 'Random' in type(step).__name__
        or hasattr(step, '_methods_with_randomness')
    ]
    if random:
        raise ValueError(
            f'CacheImages: {", ".join(random)} would be drawn once and then '
            'repeated in each epoch; put it after CacheImages'
        )


def _what_is_new(before, after):
    """Return the image, and all else that the steps have set.

    Raises:
        ValueError: If that is no image and plain Python values.
    """
    new = {
        name: value
        for name, value in after.items()
        if name not in before or before[name] is not value
    }
    image = new.pop('img', None)
    if not isinstance(image, np.ndarray) or not _is_plain(new):
        raise ValueError(
            'CacheImages: its transforms have to end with an image, `img`, '
            f'and plain values; they set {sorted(new)}. Others, PackInputs '
            'for example, stand after CacheImages'
        )
    return image, new


def _is_plain(values):
    try:
        return literal_eval(repr(values)) == values
    except (SyntaxError, ValueError):
        return False


def steps_key(transforms: list[dict]) -> str:
    """Name what steps make of an image, alike for the same
    libraries."""
    versions = cv2.__version__, mmcv.__version__, PIL.__version__
    text = json.dumps([transforms, versions], sort_keys=True, default=repr)
    return blake2b(text.encode(), digest_size=16).hexdigest()


def key_of(path: str) -> str | None:
    """Name an image; the name changes when its file is written or
    replaced.

    Returns:
        str | None: 32 digits; None where there is no file of which a change
        could be seen: it is missing, or on another machine.
    """
    try:
        status = os.stat(path)
    except OSError:
        return None
    state = status.st_ino, status.st_size, status.st_mtime_ns
    text = repr((os.path.abspath(path), *state, status.st_ctime_ns))
    return blake2b(text.encode(), digest_size=16).hexdigest()


class ImageStore:
    """Images that processes of one machine fill and read together.

    Each is a file, written under another name and then renamed, so that it is
    there as a whole or not at all, whoever writes it.

    Args:
        parent (Path): An existing folder; what fits, the system keeps in
            memory.
        name (str): Processes that give the same name share the images, which
            go when the last of them ends.
        limit (int): Most bytes of the files.

    Raises:
        OSError: If the folder cannot be written to.
    """

    def __init__(self, parent: Path, name: str, limit: int):
        self.limit = limit
        self.shared = SharedFolder(own_folder(parent) / name)
        self.folder = self.shared.path
        self._count()

    def get(self, key: str) -> tuple[np.ndarray, dict] | None:
        """Read an image, and what :meth:`put` was given with it.

        Returns:
            tuple[np.ndarray, dict] | None: The pixels, which the caller may
            change, and the values; None where there are none that can be
            read.
        """
        try:
            # read in one go: a mapping, from which to copy, takes longer
            with open_file(self.folder / key) as file:
                checksum, content = file.read(_CHECKSUM), file.read()
        except OSError:
            return None
        if checksum != _checksum(key, content):  # damaged, or of another image
            return None
        file = BytesIO(content)
        return np.load(file), literal_eval(file.read().decode())

    def put(self, key: str, image: np.ndarray, more: dict) -> bool:
        """Add an image.

        Returns:
            bool: Whether it is there; else the store is full.

        Raises:
            OSError: If the file cannot be written.
        """
        file = BytesIO()
        np.save(file, image)
        file.write(repr(more).encode())
        content = _checksum(key, file.getvalue()) + file.getvalue()
        if not self._has_room(len(content)):
            return False
        replace_bytes(self.folder / key, content, sync=False)
        self.added += len(content)
        return True

    def _has_room(self, size: int) -> bool:
        room = self.limit - self.used
        # others add images, too: the less room, the more often it is measured
        if room / 64 < self.added + size <= room:
            self._count()
        disk = shutil.disk_usage(self.folder)
        return (
            self.used + self.added + size <= self.limit
            and disk.free - size >= _SPARE * disk.total
        )

    def _count(self) -> None:
        self.used, self.added = 0, 0
        for entry in os.scandir(self.folder):
            with suppress(FileNotFoundError):  # renamed in this moment
                self.used += entry.stat().st_size


def _checksum(key: str, content: bytes) -> bytes:
    return crc32(content, crc32(key.encode())).to_bytes(_CHECKSUM, 'big')


def own_folder(parent: Path) -> Path:
    """Make this user's folder for cached images, readable by no one else."""
    folder = parent / f'mmclca-images-{os.getuid()}'
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise PermissionError(f'{folder} belongs to another user')
    return folder


class SharedFolder:
    """A folder that is deleted when the last process that uses it ends.

    Args:
        path (Path): Processes that give the same path share the folder.

    Attributes:
        path (Path): The folder.
        close (Callable): Stops using it; also when the object is deleted.

    Raises:
        OSError: If it cannot be made.
    """

    def __init__(self, path: Path):
        for lock in path.parent.glob('*.lock'):
            _delete_unused(lock)  # of processes that were killed
        self.path = path
        lock = path.with_suffix('.lock')
        held = _hold(lock)
        path.mkdir(exist_ok=True)
        # negative: after the workers, which share the lock, were ended
        self.close = Finalize(self, _leave, (held, lock), exitpriority=-10)


def _hold(lock: Path) -> int:
    held = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(held, fcntl.LOCK_SH)
    if os.fstat(held).st_nlink:
        return held
    os.close(held)  # another process has just deleted it
    return _hold(lock)


def _leave(held: int, lock: Path) -> None:
    os.close(held)
    _delete_unused(lock)


def _delete_unused(lock: Path) -> None:
    with suppress(OSError), open(lock, 'r+b') as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(file.fileno()).st_nlink:
            shutil.rmtree(lock.with_suffix(''), ignore_errors=True)
            lock.unlink()
