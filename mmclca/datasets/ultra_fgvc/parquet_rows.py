# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Reader of the parquet mirror; see ``folders``."""

from ..parquet import open_parquet, parquet_uri
from .leaf_image import SPLIT_WORDS, LeafImage, canonical, stage_of


def read_parquet(path, info):
    """Read the rows of a parquet file, but not its images.

    Args:
        path (Path): The file. Beside the four columns of the mirror, a column
            ``file_name`` is read where there is one.
        info (UltraFGVCInfo): The set.

    Returns:
        list[LeafImage]: All rows, with addresses for ``ParquetBackend``.

    Raises:
        ValueError: If a column is missing or a split unknown.
    """
    rows = _read_rows(path)
    _check_words({row['split'] for row in rows}, path)
    return [
        LeafImage(
            parquet_uri(path, i),
            row.get('file_name', str(i)),
            canonical(str(row['class_name'])),
            str(row['label']),
            SPLIT_WORDS[row['split']],
            stage_of(row.get('file_name', ''), info),
        )
        for i, row in enumerate(rows)
    ]


def _read_rows(path):
    file = open_parquet(path)
    names = file.schema_arrow.names
    missing = {'image', 'label', 'class_name', 'split'} - set(names)
    if missing:
        raise ValueError(
            f'{path} has the columns {", ".join(names)}; '
            f'{", ".join(sorted(missing))} not found'
        )
    wanted = ('label', 'class_name', 'split', 'file_name')
    columns = [name for name in wanted if name in names]
    return file.read(columns=columns, use_threads=False).to_pylist()


def _check_words(splits, path):
    unknown = splits - SPLIT_WORDS.keys()
    if unknown:
        raise ValueError(
            f'{path}: the column split has {sorted(map(str, unknown))}; '
            f'expected {", ".join(SPLIT_WORDS)}'
        )
