# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Images that stay inside a parquet file.

An image is addressed as ``parquet:///folder/file.parquet/12``, row 12, and
mmengine hands such a path to :class:`ParquetBackend`. So whatever reads
images through mmengine (``LoadImageFromFile``, inferencers, visualizers)
works on them unchanged.
"""

from .backend import ParquetBackend
from .file import iter_images, open_parquet
from .uri import parquet_uri, split_uri

__all__ = [
    'ParquetBackend',
    'iter_images',
    'open_parquet',
    'parquet_uri',
    'split_uri',
]
