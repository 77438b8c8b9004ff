# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import os
from collections import OrderedDict

from mmengine.fileio import BaseStorageBackend, register_backend

from .file import image_column
from .uri import split_uri

CACHE_BYTES = 1 << 30


@register_backend('parquet', prefixes='parquet')
class ParquetBackend(BaseStorageBackend):
    """File backend for images inside parquet files.

    A parquet file can be read by the row group only. The row groups read
    last are kept, up to ``cache_bytes``, so that a shuffled epoch over a file
    that fits costs one reading of it. A larger file is better rewritten once
    with small row groups (``ultra_fgvc.py convert --layout parquet``).

    Files are opened lazily, in each process again; a pickled copy starts with
    an empty cache.

    Args:
        column (str): The column that holds the encoded images. Defaults to
            'image'.
        cache_bytes (int): Most bytes kept, a process. A single row group
            that is larger is kept nevertheless, alone. Defaults to 1 GiB.
    """

    def __init__(self, column='image', cache_bytes=CACHE_BYTES):
        self.column = column
        self.cache_bytes = cache_bytes
        self._groups = OrderedDict()

    def __reduce__(self):
        return ParquetBackend, (self.column, self.cache_bytes)

    def get(self, filepath):
        """Read the encoded image at an address.

        Args:
            filepath (str): An address such as
                ``parquet:///folder/file.parquet/12``.

        Returns:
            bytes: The image as it was stored, for example a PNG file.

        Raises:
            FileNotFoundError: If there is no such file, row or image.
        """
        path, row = split_uri(filepath)
        images = image_column(path, self.column)
        if row >= images.starts[-1]:
            raise FileNotFoundError(
                f'{filepath}: the file has {images.starts[-1]} rows'
            )
        group = images.group_of(row)
        content = self._read(path, group, images)[row - images.starts[group]]
        if not content.is_valid:
            raise FileNotFoundError(f'{filepath}: the row holds no image')
        return content.as_py()

    def get_text(self, filepath, encoding='utf-8'):
        """Read a row as text.

        Args:
            filepath (str): An address, as in :meth:`get`.
            encoding (str): Its encoding. Defaults to 'utf-8'.

        Returns:
            str: The decoded content.
        """
        return self.get(filepath).decode(encoding)

    def exists(self, filepath):
        """Tell whether there is such a file with such a row.

        Args:
            filepath (str): An address, as in :meth:`get`.

        Returns:
            bool: Whether :meth:`get` would find a row there.
        """
        path, row = split_uri(filepath)
        if not os.path.isfile(path):
            return False
        return row < image_column(path, self.column).starts[-1]

    def _read(self, path, group, images):
        key = path, group
        if key not in self._groups:
            self._groups[key] = images.read(group)
            self._drop_oldest()
        self._groups.move_to_end(key)
        return self._groups[key]

    def _drop_oldest(self):
        total = sum(column.nbytes for column in self._groups.values())
        while total > self.cache_bytes and len(self._groups) > 1:
            _, column = self._groups.popitem(last=False)
            total -= column.nbytes
