# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Base configs of runs, found by name in our folder and those of users."""

import os
from functools import cache
from pathlib import Path

from mmengine.config import Config

from mmclca.configs import open_config
from mmclca.errors import Error
from mmclca.model_index import package_root
from mmclca.utils.messages import suggest_choices

# folders of base configs by their role in a run
MODELS, DATASETS, RECIPES, RUNTIME = 'models', 'datasets', 'schedules', '.'
# prefix omitted in names: `vit-base-p16` is clca-evit_vit-base-p16.py
MODEL = 'clca-evit_'
# prefix of files shared by datasets
SHARED = 'leaves_'


def find(role: str, name: str, folders: tuple[Path, ...] = ()) -> Path:
    """Find a base config by name; an error lists the available names."""
    files = list_base_configs(role, folders)
    by_name = {file.stem: file for file in files.values()} | files
    if name in by_name:
        return by_name[name]
    searched = ', '.join(map(str, (*folders, package_root() / 'configs')))
    raise Error(
        f'{suggest_choices(name, sorted(files))}; looked in {searched}'
    )


def read(file: Path) -> dict:
    """Read the settings of a base config and run its ``custom_imports``."""
    # dataset configs read this variable: use it as a cache key
    return _parse(file, os.environ.get('MMCLCA_DATA')).to_dict()


@cache
def _parse(file: Path, data: str | None) -> Config:
    return open_config(file)


@cache
def list_base_configs(
    role: str, folders: tuple[Path, ...] = ()
) -> dict[str, Path]:
    """Map base config names to files; earlier folders take precedence.

    Models may be named without their prefix, datasets without the image size.
    """
    files: dict[str, Path] = {}
    hidden = ('_', SHARED) if role == DATASETS else '_'
    for folder in (*folders, package_root() / 'configs'):
        base = folder / '_base_'
        paths = [
            *(base if base.is_dir() else folder).joinpath(role).glob('*.py')
        ]
        if role == MODELS:  # complete configs contain a model, too
            paths += folder.glob('*.py')
        for path in sorted(paths):
            name, _, size = path.stem.rpartition('_')
            if role == MODELS:
                name = path.stem.removeprefix(MODEL)
            elif role != DATASETS or not name or not size.isdigit():
                name = path.stem
            if not path.stem.startswith(hidden):
                files.setdefault(name, path)
    return files


def merge(files: tuple[Path, ...]) -> Config:
    """Merge base configs; later ones take precedence.

    The last one provides only the model, its preprocessing and weights, and
    custom imports.
    """
    parts = [read(file) for file in files]
    model_config = parts[-1]
    settings = {k: v for part in parts[:-1] for k, v in part.items()}
    settings['model'] = model = model_config.get('model', {})
    settings['load_from'] = model_config.get('load_from')
    # mmpretrain configs set it next to the model or in the dataset config
    of_dataset = settings.pop('data_preprocessor', None)
    model['data_preprocessor'] = (
        model.get('data_preprocessor')
        or model_config.get('data_preprocessor')
        or of_dataset
    )
    imports = []
    for part in parts:
        modules = part.get('custom_imports', {}).get('imports', [])
        imports += [modules] if isinstance(modules, str) else modules
    if imports:
        settings['custom_imports'] = dict(imports=imports)
    return Config(settings)
