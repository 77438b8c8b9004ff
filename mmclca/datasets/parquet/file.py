# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The images of a parquet file, read a row group at a time."""

import os
from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate, count

from mmclca.utils.extras import require

BATCH_ROWS = 16


def open_parquet(path):
    """Open a parquet file.

    Args:
        path (str | Path): The file.

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
    """Open a file once a process.

    Args:
        path (str): The file.
        column (str): The column that holds the images.

    Returns:
        ImageColumn: That column.
    """
    return _open(path, column, os.getpid())


@lru_cache(maxsize=16)
def _open(path, column, process):
    return ImageColumn(path, column)


def iter_images(path, rows, column='image'):
    """Read images of a parquet file once, in the order of the file.

    Few rows and a page of the file (pyarrow writes up to 1024 rows into one)
    are in memory at a time, however large the row groups are. Row groups
    without any of the rows are not read.

    Args:
        path (str | Path): The file.
        rows (Collection[int]): The rows wanted.
        column (str): The column that holds the images. Defaults to 'image'.

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
