# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Results of cells: one JSON file each, written at once or not at all."""

import json
import os
import warnings
from contextlib import suppress
from itertools import count
from pathlib import Path

# what every result holds, and of which type
KEYS = dict(
    cell=dict,
    config_hash=str,
    accuracy=float,
    gmacs=float,
    params=int,
    throughput=dict,
    gradients=dict,
    commit=str,
    versions=dict,
    machine=str,
    started=str,
    finished=str,
    seconds=float,
)

# what to do about results of other configs
OTHERWISE = 'Give another folder with --work-dir, or the cells a variant'


def read_result(path: Path) -> dict | None:
    """Read a result; None where there is none, or, with a warning, no whole
    one.

    Args:
        path (Path): The file.
    """
    try:
        return _parsed(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        said = f'{path} is no result ({error}): its cell counts as not run'
        warnings.warn(said, stacklevel=2)
        return None


def _parsed(text: bytes) -> dict:
    """The result that a text is, if it is a whole one."""
    result = json.loads(text)
    if not isinstance(result, dict):
        raise ValueError('no JSON object')
    wrong = [
        key
        for key, kind in KEYS.items()
        if not isinstance(result.get(key), kind)
    ]
    if wrong:
        raise ValueError(f'without {", ".join(wrong)}')
    return result


def set_aside(path: Path) -> None:
    """Give a file a name that nothing has, in the same folder.

    Args:
        path (Path): The file.
    """
    for number in count(1):
        aside = path.with_name(f'{path.name}.bad-{number}')
        with suppress(FileExistsError):
            aside.open('x').close()  # the name is nobody else's from here on
            os.replace(path, aside)
            return


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
