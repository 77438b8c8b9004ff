# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Results of cells: one JSON file each, written at once or not at all."""

import json
import warnings
from itertools import count
from pathlib import Path

# what every result holds
KEYS = (
    *('cell', 'config_hash', 'accuracy', 'gmacs', 'params', 'throughput'),
    *('gradients', 'commit', 'versions', 'machine'),
    *('started', 'finished', 'seconds'),
)


def read_result(path: Path, digest: str = '') -> dict | None:
    """Read a result; None where there is none, or, with a warning, no whole
    one.

    Args:
        path (Path): The file.
        digest (str): Hash of the config that it must be of. Defaults to '',
            of any.

    Raises:
        ValueError: If it is of another config.
    """
    try:
        result = _parsed(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        said = f'{path} is no result ({error}): its cell counts as not run'
        warnings.warn(said, stacklevel=2)
        return None
    if digest and result['config_hash'] != digest:
        raise ValueError(
            f'{path} is a result of other settings than the grid says: give '
            'another folder with --work-dir, or the cells a variant'
        )
    return result


def _parsed(text: bytes) -> dict:
    """The result that a text is, if it is a whole one."""
    result = json.loads(text)
    if not isinstance(result, dict):
        raise ValueError('no JSON object')
    missing = [key for key in KEYS if result.get(key) is None]
    if missing:
        raise ValueError(f'without {", ".join(missing)}')
    return result


def set_aside(path: Path) -> None:
    """Give a file a name that nothing has, in the same folder.

    Args:
        path (Path): The file, of a cell that this process has locked.
    """
    names = (path.with_name(f'{path.name}.bad-{n}') for n in count(1))
    path.rename(next(name for name in names if not name.exists()))


def read_results(folder: str | Path) -> list[dict]:
    """All results in a folder, by name.

    Args:
        folder (str | Path): Folder of a sweep.

    Raises:
        FileNotFoundError: If there is no such folder.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f'there is no folder of results {folder}')
    # a writer that was killed may have left what begins with a dot
    read = map(read_result, sorted(folder.glob('[!.]*.json')))
    return [result for result in read if result is not None]
