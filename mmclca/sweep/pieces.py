# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The config of a cell, put together from the pieces in ``configs/_base_``."""

import os
from functools import cache
from pathlib import Path

from mmengine.config import Config

from mmclca.model_index import home

from .cell import Cell

MODEL = 'clca-evit_'
# as in the paper, an image is resized to its size over this, then cropped
CROP = 0.875
# steps of a pipeline, their argument that is a size, and whether the crop
# follows
SIZED = dict(
    Resize=('scale', True),
    RandomCrop=('crop_size', False),
    CenterCrop=('crop_size', False),
    RandomResizedCrop=('scale', False),
)


@cache
def _folder() -> Path:
    folder = home() / 'configs/_base_'
    if not folder.is_dir():
        raise FileNotFoundError(
            f'{folder} is not there: a sweep needs a checkout of mmclca, or '
            'its wheel'
        )
    return folder


def backbones() -> list[str]:
    """Names of the backbones that have a model piece."""
    files = _folder().glob(f'models/{MODEL}*.py')
    return sorted(file.stem.removeprefix(MODEL) for file in files)


def datasets() -> list[str]:
    """Names of the data sets that have a piece."""
    return sorted(_dataset_files())


@cache
def _dataset_files() -> dict[str, Path]:
    files = sorted(_folder().glob('datasets/*_*.py'))
    named = {file.stem.rpartition('_'): file for file in files}
    return {
        name: file
        for (name, _, size), file in named.items()
        if size.isdigit() and not name.startswith('leaves')
    }


def compose(cell: Cell, options: dict, weights: dict[str, str]) -> Config:
    """The whole config of a cell.

    Args:
        cell (Cell): The cell.
        options (dict): Settings to change last, by dotted name.
        weights (dict[str, str]): Checkpoints of backbones, by name.

    Raises:
        ValueError: If an option is no setting of the config.
    """
    files = (
        _folder() / f'models/{MODEL}{cell.backbone}.py',
        _dataset_files()[cell.dataset],
        _folder() / 'schedules/clca_50e.py',
        _folder() / 'default_runtime.py',
    )
    cfg = Config({k: v for file in files for k, v in _read(file).items()})
    set_model(cfg.model, cell, cfg.num_classes)
    for loader in (cfg.train_dataloader, cfg.test_dataloader):
        set_image_size(loader.dataset.pipeline, cell.size)
    cfg.load_from = weights.get(cell.backbone, cfg.load_from)
    cfg.randomness.seed = cell.seed
    cfg.custom_hooks.append(dict(type='mmclca.GradientStatsHook'))
    # a cell is tested once, at its end
    cfg.val_cfg = cfg.val_dataloader = cfg.val_evaluator = None
    try:
        cfg.merge_from_dict(options)
    except (AssertionError, KeyError, TypeError) as error:
        raise ValueError(
            f'{cell.name}: its options cannot be set: {error}'
        ) from error
    return cfg


@cache
def _parsed(file: Path, data: str | None) -> Config:
    return Config.fromfile(file)


def _read(file: Path) -> dict:
    # pieces of data sets read the variable
    return _parsed(file, os.environ.get('MMCLCA_DATA')).to_dict()


def set_model(model: dict, cell: Cell, num_classes: int) -> None:
    """Give a CLCA classifier what a cell says, in place.

    Args:
        model (ConfigDict): Config of the classifier, with CLC and CLA.
        cell (Cell): The cell.
        num_classes (int): Classes of its data set.
    """
    backbone, head = model['backbone'], model['head']
    backbone['img_size'] = cell.size
    backbone['reducer'] = dict(
        type=f'mmclca.{cell.method}', keep_rate=cell.keep_rate
    )
    head['num_classes'] = num_classes
    if cell.clca in ('base', 'cla'):
        backbone['cache'] = None
    if cell.clca in ('base', 'clc'):
        backbone.update(out_indices=-1, final_norm=True)
        head.update(type='VisionTransformerClsHead', init_cfg=None)
        head.pop('num_layers')


def set_image_size(pipeline: list, size: int) -> None:
    """Set the size of images all through a pipeline, in place.

    Args:
        pipeline (list[dict]): Steps, some of which may hold further ones.
        size (int): Height and width in pixels that leave the pipeline.
    """
    for step in pipeline:
        set_image_size(step.get('transforms', []), size)
        name, crops = SIZED.get(step['type'], (None, False))
        if name:
            side = int(size / CROP) if crops else size
            step[name] = (side, side)
