# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The address of an image in a parquet file."""

import os

PREFIX = 'parquet://'


def parquet_uri(path, row):
    """Write the address of one image.

    Args:
        path (str | Path): A parquet file.
        row (int): Row in that file, from 0.

    Returns:
        str: The address, with an absolute path.
    """
    return f'{PREFIX}{os.path.abspath(path)}/{row}'


def split_uri(uri):
    """Take the address of an image apart.

    Args:
        uri (str): What :func:`parquet_uri` writes.

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
