# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A cell (one run of a grid) and its config, composed from base configs."""

import os
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mmengine.config import Config

from mmclca.configs import open_config, require_settings
from mmclca.datasets.pipelines import set_image_size
from mmclca.errors import Error
from mmclca.model_index import package_root
from mmclca.models import Variant
from mmclca.utils.messages import describe_unknown

# no CLCA, aggregation head (CLA), cache (CLC), both
ABLATIONS = ('base', 'cla', 'clc', 'clca')
NONE = 'none'  # method name for the full ViT


@dataclass(frozen=True)
class Cell:
    """One run of a grid.

    Args:
        dataset (str): Name of a dataset config.
        backbone (str): Name of a model config.
        method (str): Reducer, or ``NONE`` for the full ViT.
        keep_rate (float): Keep rate.
        size (int): Image size in pixels.
        clca (str): CLCA parts, one of ``ABLATIONS``.
        seed (int): Random seed.
        variant (str): Label that distinguishes runs with other options.
            Defaults to ''.
    """

    dataset: str
    backbone: str
    method: str
    keep_rate: float
    size: int
    clca: str
    seed: int
    variant: str = ''

    @property
    def model(self) -> Variant:
        """Token reduction, image size and CLCA parts of the model."""
        return Variant(
            None if self.method == NONE else self.method,
            self.keep_rate,
            self.size,
            cache=self.clca in ('clc', 'clca'),
            cla=self.clca in ('cla', 'clca'),
        )

    @property
    def name(self) -> str:
        """Unique name for the result file and folder."""
        parts = (
            f'{self.dataset}-{self.size}px',
            self.backbone,
            f'{self.method.lower()}-kr{100 * self.keep_rate:g}',
            self.clca,
            self.variant,
            f'seed{self.seed}',
        )
        return '_'.join(filter(None, parts))


# folders for each kind of base config
MODELS, DATASETS, RECIPES, RUNTIME = 'models', 'datasets', 'schedules', '.'
# prefix omitted in names: `vit-base-p16` is clca-evit_vit-base-p16.py
MODEL = 'clca-evit_'
# prefix of files shared by datasets
SHARED = 'leaves_'


def find(kind: str, name: str, folders: tuple[Path, ...] = ()) -> Path:
    """Find a base config by name; an error lists the available names."""
    files = base_configs(kind, folders)
    named = {file.stem: file for file in files.values()} | files
    if name in named:
        return named[name]
    places = ', '.join(map(str, (*folders, package_root() / 'configs')))
    raise Error(f'{describe_unknown(name, sorted(files))}; looked in {places}')


def read(file: Path) -> dict:
    """Read the settings of a base config and run its ``custom_imports``."""
    # dataset configs read this variable: use it as a cache key
    return _parsed(file, os.environ.get('MMCLCA_DATA')).to_dict()


@cache
def _parsed(file: Path, data: str | None) -> Config:
    return open_config(file)


@cache
def base_configs(kind: str, folders: tuple[Path, ...] = ()) -> dict[str, Path]:
    """Map base config names to files; earlier folders take precedence."""
    found = {}
    for folder in (*folders, package_root() / 'configs'):
        for file in _files(folder, kind):
            found.setdefault(_name(kind, file.stem), file)
    return found


def _files(folder: Path, kind: str) -> list[Path]:
    """List the base configs of a kind in a folder."""
    base = folder / '_base_'
    files = [*(base if base.is_dir() else folder).joinpath(kind).glob('*.py')]
    if kind == MODELS:  # complete configs contain a model, too
        files += folder.glob('*.py')
    hidden = ('_', SHARED) if kind == DATASETS else '_'
    return sorted(f for f in files if not f.stem.startswith(hidden))


def _name(kind: str, stem: str) -> str:
    """Remove the prefix of a model, or the image size of a dataset."""
    if kind == MODELS:
        return stem.removeprefix(MODEL)
    name, _, size = stem.rpartition('_')
    return name if kind == DATASETS and name and size.isdigit() else stem


RECIPE = 'clca_50e'
ACCURACY = ('Accuracy', 'mmpretrain.Accuracy')
NEEDED = (
    'model.backbone',
    'model.head',
    'model.data_preprocessor',
    'num_classes',
    'train_dataloader.dataset',
    'test_dataloader.dataset',
    'test_evaluator',
    'test_cfg',
    'train_cfg',
    'optim_wrapper',
)


def compose(
    cell: Cell,
    options: dict = {},
    weights: dict[str, str] = {},
    recipe: str = RECIPE,
    folders: tuple[Path, ...] = (),
) -> Config:
    """Compose the complete config of a cell.

    ``options`` are settings by dotted name, applied last; ``weights`` maps
    backbone names to checkpoints and replaces ``load_from``; ``recipe`` names
    a schedule; user ``folders`` with base configs take precedence. Raises a
    Error if a base config or a required setting is missing, or if the
    cell or an option does not match the config.
    """
    files = [
        find(RUNTIME, 'default_runtime', folders),
        find(RECIPES, recipe, folders),
        find(DATASETS, cell.dataset, folders),
        find(MODELS, cell.backbone, folders),
    ]
    cfg = _merge(files)
    cfg.load_from = weights.get(cell.backbone, cfg.load_from)
    try:
        require_settings(cfg, *NEEDED)
        _check_metric(cfg.test_evaluator)
        _apply_cell(cfg, cell)
        # a copy, because merging removes `_delete_`
        cfg.merge_from_dict(deepcopy(options))
        _set_num_classes(cfg.model)
    except (AssertionError, KeyError, TypeError, ValueError) as error:
        listed = ', '.join(map(str, files))
        raise Error(
            f'{cell.name}: {error} (options {options}, configs {listed})'
        ) from error
    return cfg


def _merge(files: list[Path]) -> Config:
    """Merge base configs; later ones take precedence.

    The last one provides only the model, its preprocessing and weights, and
    custom imports.
    """
    *others, of_model = parts = [read(file) for file in files]
    cfg = {k: v for part in others for k, v in part.items()}
    cfg['model'] = model = of_model.get('model', {})
    cfg['load_from'] = of_model.get('load_from')
    # mmpretrain configs set it next to the model or in the dataset config
    own = cfg.pop('data_preprocessor', None)
    beside = of_model.get('data_preprocessor') or own
    model['data_preprocessor'] = model.get('data_preprocessor') or beside
    imports = [one for part in parts for one in _imports(part)]
    if imports:
        cfg['custom_imports'] = dict(imports=imports)
    return Config(cfg)


def _imports(part: dict) -> list[str]:
    """List the modules in the ``custom_imports`` of a config."""
    named = part.get('custom_imports', {}).get('imports', [])
    return [named] if isinstance(named, str) else named


def _check_metric(evaluator: dict | list) -> None:
    """Raise if the test does not measure top-1 accuracy."""
    metrics = evaluator if isinstance(evaluator, list) else [evaluator]
    topk = [m.get('topk', 1) for m in metrics if m['type'] in ACCURACY]
    if not any(1 in (k if isinstance(k, list | tuple) else [k]) for k in topk):
        raise Error(
            'test_evaluator lacks top-1 accuracy: add '
            "dict(type='Accuracy', topk=(1,))"
        )


def _set_num_classes(model: dict) -> None:
    """Set the number of classes for batch augmentations such as mixup."""
    mixes = (model.get('train_cfg') or {}).get('augments')
    if mixes or 'num_classes' in model.get('data_preprocessor', ()):
        model.data_preprocessor.num_classes = model.head.num_classes


def _apply_cell(cfg: Config, cell: Cell) -> None:
    """Apply the settings of a cell to a config, in place.

    Gradients are logged, and validation is skipped.
    """
    cfg.model.head.num_classes = cfg.num_classes
    cfg.model = cell.model.apply(cfg.model)
    for loader in (cfg.train_dataloader, cfg.test_dataloader):
        set_image_size(loader.dataset, cell.size)
    cfg.randomness = dict(cfg.get('randomness') or {}, seed=cell.seed)
    stats = dict(type='mmclca.GradientStatsHook')
    cfg.custom_hooks = [*(cfg.get('custom_hooks') or []), stats]
    # skip validation: each cell is tested once after training
    cfg.val_cfg = cfg.val_dataloader = cfg.val_evaluator = None
