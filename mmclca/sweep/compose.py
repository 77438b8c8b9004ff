# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The config of a cell, put together from pieces."""

from pathlib import Path

from mmengine.config import Config

from mmclca.configs import require_settings
from mmclca.models import with_reduction

from .cell import NONE, Cell
from .image_size import set_image_size
from .pieces import DATASETS, MODELS, RECIPES, RUNTIME, find, read

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
    """The whole config of a cell.

    Args:
        cell (Cell): The cell.
        options (dict): Settings to change last, by dotted name.
            Defaults to {}.
        weights (dict[str, str]): Checkpoints of backbones, by name.
            Defaults to {}, those that the pieces name.
        recipe (str): Name of a schedule. Defaults to ``RECIPE``.
        folders (tuple[Path, ...]): A user's folders of configs, which come
            before ours. Defaults to ().

    Raises:
        ValueError: If there is no such piece, if the pieces leave out what
            a run needs, if the model cannot be what the cell says, or if an
            option is no setting of the config.
    """
    files = [
        find(RUNTIME, 'default_runtime', folders),
        find(RECIPES, recipe, folders),
        find(DATASETS, cell.dataset, folders),
        find(MODELS, cell.backbone, folders),
    ]
    cfg = _joined(files)
    cfg.load_from = weights.get(cell.backbone, cfg.load_from)
    try:
        require_settings(cfg, *NEEDED)
        _check_metric(cfg.test_evaluator)
        _set(cfg, cell)
        cfg.merge_from_dict(options)
    except (AssertionError, KeyError, TypeError, ValueError) as error:
        listed = ', '.join(map(str, files))
        raise ValueError(
            f'{cell.name}: {error} (options: {options}, pieces: {listed})'
        ) from error
    return cfg


def _joined(files: list[Path]) -> Config:
    """The settings of all pieces; of the last one, the model alone."""
    *others, of_model = parts = [read(file) for file in files]
    cfg = {k: v for part in others for k, v in part.items()}
    cfg['model'] = model = of_model.get('model', {})
    cfg['load_from'] = of_model.get('load_from')
    # in configs of mmpretrain it is beside the model, or with the data set
    own = cfg.pop('data_preprocessor', None)
    beside = of_model.get('data_preprocessor') or own
    model['data_preprocessor'] = model.get('data_preprocessor') or beside
    imports = [one for part in parts for one in _imports(part)]
    if imports:
        cfg['custom_imports'] = dict(imports=imports)
    return Config(cfg)


def _imports(part: dict) -> list[str]:
    named = part.get('custom_imports', {}).get('imports', [])
    return [named] if isinstance(named, str) else named


def _check_metric(evaluator: dict | list) -> None:
    """See that a test tells what a result holds."""
    metrics = evaluator if isinstance(evaluator, list) else [evaluator]
    topk = [m.get('topk', 1) for m in metrics if m['type'] in ACCURACY]
    if not any(1 in (k if isinstance(k, list | tuple) else [k]) for k in topk):
        raise ValueError(
            'test_evaluator tells no top-1 accuracy: add '
            "dict(type='Accuracy', topk=(1,))"
        )


def _set(cfg: Config, cell: Cell) -> None:
    """Give a config what a cell says, in place."""
    cfg.model.backbone.img_size = cell.size
    cfg.model.head.num_classes = cfg.num_classes
    if 'num_classes' in cfg.model.data_preprocessor:
        cfg.model.data_preprocessor.num_classes = cfg.num_classes
    reducer = (cell.method, cell.keep_rate) if cell.method != NONE else ()
    cfg.model = with_reduction(
        cfg.model,
        *reducer,
        cache=cell.clca in ('clc', 'clca'),
        cla=cell.clca in ('cla', 'clca'),
    )
    for loader in (cfg.train_dataloader, cfg.test_dataloader):
        set_image_size(loader.dataset, cell.size)
    cfg.randomness = dict(cfg.get('randomness') or {}, seed=cell.seed)
    stats = dict(type='mmclca.GradientStatsHook')
    cfg.custom_hooks = [*(cfg.get('custom_hooks') or []), stats]
    # a cell is tested once, at its end
    cfg.val_cfg = cfg.val_dataloader = cfg.val_evaluator = None
