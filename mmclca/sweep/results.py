# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Result files: one JSON file per run and config."""

import json
import warnings
from itertools import count
from pathlib import Path, PurePath

from mmclca.checkpoints.digests import digest
from mmclca.errors import Error

# config sections that affect training and test results
SECTIONS = (
    'model',
    'train_dataloader',
    'test_dataloader',
    'test_evaluator',
    'optim_wrapper',
    'param_scheduler',
    'auto_scale_lr',
    'train_cfg',
    'test_cfg',
    'load_from',
    'randomness',
    'custom_hooks',
)
# settings in these sections without effect on results
SPEED = ('num_workers', 'persistent_workers', 'pin_memory', 'val_interval')


def config_hash(cfg: dict) -> str:
    """Hash the settings that affect results, as 16 hex digits.

    Only the last component of paths counts, so the hash is the same on other
    machines.
    """
    return digest({name: _strip(cfg.get(name)) for name in SECTIONS})


def _strip(value):
    """Remove settings without effect, and the folders of paths."""
    if isinstance(value, dict):
        ignored = set(SPEED)
        if value.get('type') == 'mmclca.UltraFGVC':
            ignored.add('data_root')  # the shared folder of all datasets
        return {
            str(key): _strip(inner)
            for key, inner in value.items()
            if key not in ignored
        }
    if isinstance(value, list | tuple):
        return [_strip(inner) for inner in value]
    if isinstance(value, str) and '://' not in value:
        return PurePath(value).name
    return value


# keys required in every result
RESULT_KEYS = (
    'run',
    'config_hash',
    'accuracy',
    'gmacs',
    'params',
    'throughput',
    'gradients',
    'commit',
    'versions',
    'machine',
    'started',
    'finished',
    'seconds',
)


def read_result(path: Path, wanted: str = '') -> dict | None:
    """Read a result; return None if it is missing or, with a warning, invalid.

    Raises:
        Error: If the config hash is not ``wanted`` ('' accepts all).
    """
    try:
        result = json.loads(path.read_bytes())
        if not isinstance(result, dict):
            raise Error('expected a JSON object')
        if missing := [key for key in RESULT_KEYS if result.get(key) is None]:
            raise Error(f'missing {", ".join(missing)}')
    except FileNotFoundError:
        return None
    except ValueError as error:
        problem = f'{path} is not a result ({error}): the run is repeated'
        warnings.warn(problem, stacklevel=2)
        return None
    if wanted and result['config_hash'] != wanted:
        raise Error(
            f'{path} was made with other settings than the grid: choose '
            'another `work_dir`, or set a variant in the grid'
        )
    return result


def set_aside(path: Path) -> None:
    """Rename an invalid result of a locked run to an unused name."""
    names = (path.with_name(f'{path.name}.bad-{n}') for n in count(1))
    path.rename(next(name for name in names if not name.exists()))
