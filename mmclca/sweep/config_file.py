# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Write the config of a run as a small file with ``_base_`` configs."""

from pathlib import Path

from mmengine.config import Config

from mmclca.configs import open_config
from mmclca.errors import Error
from mmclca.utils.files import replace_text

from .base_configs import read
from .results import config_hash
from .runs import Run


def write_config(run: Run, cfg: Config, path: Path) -> Config:
    """Write the composed config of a run and return it as read again.

    The file lists the base configs in ``_base_`` and only the settings that
    differ from them, so that a reader sees what the run changes, and
    ``tools/train.py`` trains it. mmengine refuses two base configs with the
    same setting: then the later one is not listed, and its settings are
    written out.

    Raises:
        Error: If a base config has changed since ``cfg`` was composed.
    """
    bases, inherited = [], {}
    for file in run.bases:
        settings = read(file)
        if not settings.keys() & inherited.keys():
            bases.append(str(file.absolute()))
            inherited |= settings
    changes = find_changes(inherited, cfg.to_dict())
    base_lines = '\n'.join(f'    {base!r},' for base in bases)
    replace_text(
        path,
        f'# Run {run.key.name}: python tools/train.py {path.name}\n'
        f'_base_ = [\n{base_lines}\n]\n{Config(changes).pretty_text}',
    )
    written = open_config(path)
    if config_hash(written) != config_hash(cfg):
        raise Error(
            f'{path} differs from the config of the run; start the sweep '
            f'again if one of these files has changed: {", ".join(bases)}'
        )
    return written


def find_changes(inherited: dict, settings: dict) -> dict:
    """Return what a config with ``_base_`` must set to get ``settings``.

    Args:
        inherited (dict): Settings of the base configs.
        settings (dict): Complete settings.

    Returns:
        dict: Changed and new settings. Groups in which a setting is missing
        are complete, with ``_delete_``.
    """
    changes = {}
    for name, value in settings.items():
        if name not in inherited:
            changes[name] = value
            continue
        base = inherited[name]
        if not isinstance(value, dict):
            if type(value) is not type(base) or value != base:
                changes[name] = value
        elif not isinstance(base, dict) or base.keys() - value.keys():
            changes[name] = dict(value, _delete_=True)
        elif inner := find_changes(base, value):
            changes[name] = inner
    return changes
