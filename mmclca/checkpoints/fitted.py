# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Recognize checkpoint files and model folders of ``mmclca fit``."""

import json
from contextlib import suppress
from os import PathLike
from os.path import expanduser
from pathlib import Path

from mmclca.utils.folders import find_newest, finish_replacing, refuse_links
from mmclca.utils.messages import warn

from .converter import FILE_NAMES, convert_record

MODEL, THRESHOLD, RECORD = 'model.pth', 'threshold.json', 'fit.json'
WEB = 'web'  # folder of the exported web app
# model files, replaced together
FILES = (
    *(MODEL, THRESHOLD, 'probe.pth', RECORD, 'photographs.csv'),
    *('cv_probabilities.safetensors', 'report.html'),
)
# other entries that fit and export write
OTHERS = (
    *('.draft', '.lock', 'features', 'log.txt', 'training'),
    *('pictures.safetensors', WEB),
)
WEIGHTS = ('.bin', '.ckpt', '.npz', '.pt', '.pth', '.safetensors')


def is_checkpoint(name) -> bool:
    """Return whether a name belongs to a weight file or model folder."""
    return isinstance(name, str | PathLike) and (
        str(name).lower().endswith(WEIGHTS) or is_fitted(name)
    )


def is_fitted(place: str | PathLike) -> bool:
    """Return whether a path is a model folder.

    Raises:
        Error: If the model or its folder is a link.
    """
    return find_newest(Path(expanduser(place)), MODEL).is_file()


def prepare_writing(folder: Path) -> None:
    """Prepare a model folder for writing.

    An interrupted file replacement is completed, and files get their present
    names.

    Raises:
        Error: If an entry written by fit or export is a link.
    """
    names = (*FILES, *FILE_NAMES)
    refuse_links(folder, (*names, *OTHERS))
    finish_replacing(folder, names)
    convert_names(folder)
    convert_names(folder / '.draft')


def convert_names(folder: Path) -> None:
    """Give the files of an earlier version in a model folder their new names.

    Other folders stay as they are.
    """
    for old, new in FILE_NAMES.items():
        if (folder / RECORD).is_file() and not (folder / new).exists():
            with suppress(FileNotFoundError):
                (folder / old).rename(folder / new)


def model_file(place: str | PathLike) -> str:
    """Return the weight file in a model folder; keep other paths.

    Raises:
        FileNotFoundError: If the folder contains no model, or the path does
            not exist.
    """
    path = Path(expanduser(place))
    if is_fitted(path):
        return str(find_newest(path, MODEL))
    fit = f'create a model with: python -m mmclca fit PHOTOS --out {place}'
    if path.is_dir():
        raise FileNotFoundError(
            f'{place} does not contain model.pth; pass the checkpoint file, '
            f'or {fit}'
        )
    if not (path.suffix or path.is_file() or '://' in str(place)):
        raise FileNotFoundError(
            f'{place} does not exist, neither as a checkpoint nor as a model '
            f'folder; check the path, or {fit}'
        )
    return str(place)


def threshold_file(place: str | PathLike) -> Path | None:
    """Return the threshold file in a model folder, None without.

    If fit has written one that is gone, a warning says so.
    """
    if not is_fitted(place):
        return None
    folder = Path(expanduser(place))
    path = find_newest(folder, THRESHOLD)
    if path.is_file() and path.stat().st_size:
        return path
    if has_threshold(folder):
        warn(
            f'photos of unknown classes are not flagged: {path} is missing; '
            'copy it from the original model folder'
        )
    return None


def has_threshold(folder: Path) -> bool:
    """Return whether fit has written a threshold, by fit.json."""
    try:
        facts = convert_record(
            json.loads(find_newest(folder, RECORD).read_bytes())
        )
        return facts['threshold']['threshold'] is not None
    except (LookupError, OSError, RecursionError, TypeError, ValueError):
        return False  # too few photos, or no record


def missing_files(folder: Path) -> list[str]:
    """List the names of files that fit wrote into a folder and that are gone.

    Empty if less than two files of a model are there.

    Raises:
        Error: If a file is a link.
    """
    names = {
        x for x in (*FILES, *FILE_NAMES) if find_newest(folder, x).is_file()
    }
    names |= {FILE_NAMES[name] for name in names & FILE_NAMES.keys()}
    missing = [name for name in FILES if name not in names]
    if len(FILES) - len(missing) < 2:
        return []
    if RECORD not in missing and not has_threshold(folder):
        missing = [name for name in missing if name != THRESHOLD]
    return missing
