# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Where an Ultra-FGVC set lies in a folder, and in which layout."""

from pathlib import Path
from typing import NamedTuple

from .folders import READERS, csv_files, subfolders
from .info import plain


class Source(NamedTuple):
    """Where a set was found.

    Args:
        layout (str): A key of ``READERS``.
        roots (tuple): Pairs of the part of the set (UltraFGVCInfo; SoyAgeing
            has one a stage, or itself where they lie together) and its place
            (Path).
    """

    layout: str
    roots: tuple

    def __str__(self):
        places = ', '.join(str(root) for _, root in self.roots)
        return f'{self.layout} layout at {places}'


def find_sources(data_root, info, layout=None):
    """Find every form in which a set is kept in a folder.

    Args:
        data_root (str | Path): Where to look: in the folder itself and in
            those below it that are named for the set.
        info (UltraFGVCInfo): The set.
        layout (str, optional): Look for this layout only.

    Returns:
        list[Source]: All places, the preferred layout first.

    Raises:
        ValueError: If there is no such layout.
    """
    if layout is not None and layout not in READERS:
        raise ValueError(
            f'layout={layout!r} is unknown; there are {", ".join(READERS)}'
        )
    folder = Path(data_root)
    sources = []
    for name in [layout] if layout else READERS:
        roots = find_roots(folder, info, name)
        sources += [Source(name, ((info, root),)) for root in roots]
        if not roots:
            sources += _stage_by_stage(folder, info, name)
    return sources


def _stage_by_stage(folder, info, layout):
    """Find all stages of SoyAgeing, each in a place of its own."""
    if len(info.parts) < 2:
        return []
    found = [find_roots(folder, part, layout) for part in info.parts]
    if not all(found):
        return []
    roots = [places[0] for places in found]
    # A list file is named for its stage, so five can lie in one folder.
    if layout != 'csv' and len(set(roots)) < len(roots):
        return []
    return [Source(layout, tuple(zip(info.parts, roots, strict=True)))]


def not_found(data_root, info):
    """Say where a set was looked for, and what would have been found.

    Args:
        data_root (str | Path): Where it was looked for.
        info (UltraFGVCInfo): The set.

    Returns:
        str: A message of several lines.
    """
    folders = set_folders(Path(data_root), info)
    looked = '\n'.join(f'  {folder}' for folder in folders)
    parquet = ', '.join(part.parquet for part in info.parts)
    return (
        f'{info.title} was not found. Looked in:\n{looked}\n'
        'for one of:\n'
        '  anno/train.txt, anno/test.txt and images/ (released archives; '
        'SoyAgeing: in a folder R1, R3, ... each)\n'
        '  train.csv, val.csv, test.csv and a folder of images\n'
        '  train/, val/, test/ with a folder a class\n'
        f'  {parquet}\n'
        f'Folders may be called {", ".join(info.folders)}, in any case. '
        'How to get the set: docs/data_sets.md, or\n'
        '  python tools/dataset_converters/ultra_fgvc.py download '
        f'{info.name} --to {data_root}'
    )


def find_roots(folder, info, layout):
    """Find where a folder itself, or one for this set in it, has a layout.

    Args:
        folder (Path): What the user names as ``data_root``; a parquet file is
            taken as it is.
        info (UltraFGVCInfo): The set.
        layout (str): A key of ``READERS``.

    Returns:
        list[Path]: Places for the reader, those named for the set first.
    """
    if layout == 'parquet':
        return _parquet_files(folder, info)
    return [f for f in set_folders(folder, info) if _IS[layout](f, info)]


def set_folders(folder, info):
    """List the folders that may hold a set.

    Args:
        folder (Path): Where to look.
        info (UltraFGVCInfo): The set.

    Returns:
        list[Path]: Folders named for the set, at most two below ``folder``,
        then ``folder`` itself.
    """
    first = _named(folder, info)
    return [*(f for sub in first for f in _named(sub, info)), *first, folder]


def _named(folder, info):
    names = {*info.folders, *_container_names(info)}
    return [f for f in subfolders(folder) if plain(f.name) in names]


def _container_names(info):
    # A stage of SoyAgeing is often kept in the folder of the whole.
    if len(info.stages) != 1:
        return ()
    key = info.stages[0].lower()
    return tuple(n.removesuffix(key) for n in info.folders if n != key)


def _parquet_files(folder, info):
    if folder.suffix == '.parquet' and folder.is_file():
        return [folder]
    names = {plain(Path(info.parquet).stem), *info.folders} - {''}
    places = [*set_folders(folder, info), folder / 'datasets' / 'ufgvc']
    return [
        file
        for place in places
        for file in sorted(place.glob('*.parquet'))
        if plain(file.stem).removesuffix('dataset') in names
        or plain(file.stem) in names
    ]


def _is_released(root, info):
    return any(
        (root / 'anno' / f'{s}.txt').is_file() for s in ('train', 'test')
    )


def _is_folders(root, info):
    return any(subfolders(root / split) for split in ('train', 'test'))


_IS = dict(released=_is_released, csv=csv_files, folders=_is_folders)
