# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Reader of the parquet mirror; see ``layouts``."""

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
    table = _read_rows(path)
    _check_words(table['split'], path)
    numbers = range(len(table['split']))
    names = table['file_name'] or [str(i) for i in numbers]
    return [
        LeafImage(
            parquet_uri(path, i),
            names[i],
            canonical(str(table['class_name'][i])),
            str(table['label'][i]),
            SPLIT_WORDS[table['split'][i]],
            stage_of(names[i], info),
        )
        for i in numbers
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
    wanted = ['label', 'class_name', 'split', 'file_name']
    columns = [name for name in wanted if name in names]
    table = file.read(columns=columns, use_threads=False).to_pydict()
    return {name: table.get(name) for name in wanted}


def _check_words(splits, path):
    unknown = set(splits) - set(SPLIT_WORDS)
    if unknown:
        raise ValueError(
            f'{path}: the column split has {sorted(map(str, unknown))}; '
            f'expected {", ".join(SPLIT_WORDS)}'
        )
