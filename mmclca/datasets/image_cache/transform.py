# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import logging
import tempfile
from ast import literal_eval
from pathlib import Path

import numpy as np
from mmcv.transforms import BaseTransform
from mmengine.dataset import Compose
from mmengine.logging import print_log

from mmclca.registry import TRANSFORMS

from .store import ImageStore, key_of, steps_key

_MEMORY = Path('/dev/shm')  # not on macOS
# shares of a file system that stay free; workers hand over batches in memory
_SPARE_MEMORY, _SPARE_DISK = 0.5, 0.1
_MIB = 1 << 20


@TRANSFORMS.register_module()
class CacheImages(BaseTransform):
    """The first steps of a pipeline, done once for each image.

    Small sets are read again in each epoch. The image that the first steps
    give (decoded and resized, before anything random) is kept in shared
    memory, and what is over its limit on disk, a file an image; later epochs
    read it from there. All workers and processes of a machine share what is
    kept, in whatever way they were started, and it is deleted when the last
    of them ends. The pixels are those of the steps, bit for bit. An image
    whose file has changed is read again.

    It stands first in the pipelines of training and validation::

        dict(type='mmclca.CacheImages',
             transforms=[dict(type='LoadImageFromFile'), resize])

    Images that cannot be kept (limits, a full disk, a folder that cannot be
    written to, no file on this machine) go through the steps each time; the
    log says so once.

    Args:
        transforms (list[dict]): Configs of the steps, which may read nothing
            of a sample but its ``img_path``, and draw nothing at random.
        memory_mb (int): Most MiB in shared memory, for all images that these
            steps give on this machine. At least half of its space stays
            free, as workers need it too. Defaults to 1024.
        disk_mb (int): Most MiB on disk, where memory is full; a tenth of the
            disk stays free. Defaults to 4096. Both 0: nothing is kept.
        folder (str, optional): Where on disk. Defaults to the system's folder
            for temporary files (``TMPDIR``).

    Raises:
        ValueError: If a step is random or a limit negative.
    """

    def __init__(self, transforms, memory_mb=1024, disk_mb=4096, folder=None):
        super().__init__()
        _check_limits(memory_mb, disk_mb)
        self.arguments = transforms, memory_mb, disk_mb, folder
        self.limits = f'memory_mb={memory_mb}, disk_mb={disk_mb}'
        self.steps = Compose([TRANSFORMS.build(step) for step in transforms])
        _check_steps(self.steps.transforms)
        self.warned = False
        places = (
            (_MEMORY, memory_mb, _SPARE_MEMORY),
            (Path(folder or tempfile.gettempdir()), disk_mb, _SPARE_DISK),
        )
        self.stores = list(_open_stores(steps_key(transforms), places))

    def __reduce__(self):
        return type(self), self.arguments  # a spawned worker opens its own

    def transform(self, results):
        """Give a sample its image.

        Args:
            results (dict): A sample with ``img_path``.

        Returns:
            dict | None: What the steps return.
        """
        if not self.stores:
            return self.steps(results)
        key = key_of(results['img_path'])
        if key is None:
            self._warn_once(
                f'{results["img_path"]} is no file of this machine, of which '
                'a change could be seen; such images are not kept'
            )
            return self.steps(results)
        for store in self.stores:
            found = store.get(key)
            if found:
                image, more = found
                return dict(results, **more, img=image)
        return self._decode_and_keep(results, key)

    def _decode_and_keep(self, results, key):
        before = dict(results)
        after = self.steps(results)
        if after is not None:  # else an image that the steps leave out
            self._keep(key, *_what_is_new(before, after))
        return after

    def _keep(self, key, image, more):
        for store in self.stores:
            try:
                if store.put(key, image, more):
                    return
            except OSError as error:
                store.limit = 0
                self._warn_once(
                    f'no more images are kept in {store.folder}: {error}'
                )
        self._warn_once(
            f'the image cache is full ({self.limits}, or what may be taken of '
            'memory and disk); other images are decoded in each epoch'
        )

    def _warn_once(self, message):
        """Warn, in one process of those that share the images."""
        if self.warned:
            return
        self.warned = True
        try:
            (self.stores[0].folder / 'warned').touch(exist_ok=False)
        except FileExistsError:
            return
        except OSError:  # better twice than never
            pass
        _warn(message)

    def __repr__(self):
        return f'{type(self).__name__}({self.limits}, steps={self.steps})'


def _open_stores(name, places):
    for parent, megabytes, spare in places:
        if not megabytes or (parent == _MEMORY and not parent.is_dir()):
            continue
        try:
            yield ImageStore(parent, name, megabytes * _MIB, spare)
        except OSError as error:
            _warn(f'no images are kept in {parent}: {error}')


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


def _check_limits(memory_mb, disk_mb):
    if memory_mb < 0 or disk_mb < 0:
        raise ValueError(
            f'CacheImages: memory_mb={memory_mb}, disk_mb={disk_mb}: MiB from '
            '0 on'
        )


def _what_is_new(before, after):
    """The image, and all else that the steps have set.

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
