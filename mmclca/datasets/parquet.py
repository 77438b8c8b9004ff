# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Images that stay inside a parquet file.

An image is addressed as ``parquet:///folder/file.parquet/12``, row 12, and
mmengine hands such a path to :class:`ParquetBackend`. So whatever reads
images through mmengine (``LoadImageFromFile``, inferencers, visualizers)
works on them unchanged.
"""

import os
from bisect import bisect_right
from collections import OrderedDict
from functools import lru_cache
from itertools import accumulate, count

from mmengine.fileio import BaseStorageBackend, register_backend

from mmclca.utils.extras import require

PREFIX = 'parquet://'
CACHE_BYTES = 1 << 30
BATCH_ROWS = 16


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


def parquet_uri(path, row):
    """Write the address of the image in a row, with an absolute path."""
    return f'{PREFIX}{os.path.abspath(path)}/{row}'


def split_uri(uri):
    """Take the address of an image apart.

    Returns:
        tuple[str, int]: The file and the row.

    Raises:
        ValueError: If it is not such an address.
    """
    path, _, row = str(uri).removeprefix(PREFIX).rpartition('/')
    if not (str(uri).startswith(PREFIX) and path and row.isdigit()):
        raise ValueError(
            f'{uri!r} is not the address of an image in a parquet file; '
            f'expected {PREFIX}/folder/file.parquet/ROW'
        )
    return path, int(row)


def open_parquet(path):
    """Open a parquet file.

    Returns:
        pyarrow.parquet.ParquetFile: The file, its footer read.

    Raises:
        ImportError: Without pyarrow.
        ValueError: If it is no parquet file, or only a part of one.
    """
    require('pyarrow', extra='parquet')
    from pyarrow import parquet

    # Memory-mapped and without Arrow's threads: a forked worker may not
    # inherit either a file position or a half-locked thread pool.
    try:
        return parquet.ParquetFile(path, memory_map=True, pre_buffer=False)
    except ValueError as error:  # ArrowInvalid
        raise ValueError(
            f'{path} is no parquet file, or a part of one: {error}'
        ) from error


class ImageColumn:
    """The image column of one file, read a row group at a time."""

    def __init__(self, path, column):
        self.file = open_parquet(path)
        self.column = column
        if column not in self.file.schema_arrow.names:
            raise ValueError(
                f'{path} has no column {column!r}; it has '
                f'{", ".join(self.file.schema_arrow.names)}'
            )
        groups = range(self.file.metadata.num_row_groups)
        sizes = (self.file.metadata.row_group(i).num_rows for i in groups)
        self.starts = [0, *accumulate(sizes)]

    def group_of(self, row):
        return bisect_right(self.starts, row) - 1

    def read(self, group):
        """Read a row group as a chunked array of bytes."""
        table = self.file.read_row_group(
            group, columns=[self.column], use_threads=False
        )
        return _encoded(table[self.column])

    def batches(self, group):
        """Read a row group a few rows at a time, as arrays of bytes."""
        for batch in self.file.iter_batches(
            BATCH_ROWS, [group], columns=[self.column], use_threads=False
        ):
            yield _encoded(batch[self.column])


def _encoded(column):
    from pyarrow import compute, types

    # The ``datasets`` library writes an image as a struct {bytes, path}.
    if types.is_struct(column.type):
        return compute.struct_field(column, 'bytes')
    return column


def image_column(path, column):
    """Open a column of images of a file, once a process."""
    return _open(path, column, os.getpid())


@lru_cache(maxsize=16)
def _open(path, column, process):
    return ImageColumn(path, column)


def iter_images(path, rows, column='image'):
    """Read images of a parquet file once, in the order of the file.

    Few rows and a page of the file (pyarrow writes up to 1024 rows into one)
    are in memory at a time, however large the row groups are. Row groups
    without any of the rows are not read.

    Yields:
        tuple[int, bytes | None]: Row and encoded image; None where the row
        holds none.

    Raises:
        ValueError: If a row group cannot be read.
    """
    images = image_column(str(path), column)
    rows = set(rows)
    for group in sorted({images.group_of(row) for row in rows}):
        numbers = count(images.starts[group])
        try:
            for batch in images.batches(group):
                for content, row in zip(batch, numbers, strict=False):
                    if row in rows:
                        yield row, content.as_py()
        except (OSError, ValueError) as error:  # what pyarrow raises
            raise ValueError(
                f'{path}: row group {group} is damaged: {error}'
            ) from error
