# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""All configs and base configs, each parsed once."""

import os
from copy import deepcopy
from functools import cache
from unittest.mock import patch

import pytest
import yaml
from mmengine.config import Config
from mmengine.optim import build_optim_wrapper
from tiny_run import ROOT

from mmclca.registry import MODELS
from mmclca.utils.meta_device import on_meta_device

FOLDER = ROOT / 'configs'
CONFIGS = sorted(FOLDER.glob('clca/*.py'))
VITS = [
    path
    for name in ('deit', 'deit3', 'parallel')
    for path in sorted(FOLDER.glob(f'{name}/*.py'))
]
OTHERS = [
    path
    for name in ('cait', 'patchconvnet', 'resmlp')
    for path in sorted(FOLDER.glob(f'{name}/*.py'))
]
FAMILY = VITS + OTHERS
PRETRAINING = [
    path
    for name in ('beit', 'mae_lite', 'mirl')
    for path in sorted(FOLDER.glob(f'{name}/*.py'))
]
BASELINES = sorted(FOLDER.glob('baselines/*.py'))
MODEL_PIECES = sorted(FOLDER.glob('_base_/models/clca-*.py'))


def each(paths):
    return pytest.mark.parametrize('path', paths, ids=lambda path: path.stem)


@cache
def read(path):
    """Read a config with the default data folder."""
    with patch.dict(os.environ):
        os.environ.pop('MMCLCA_DATA', None)
        return Config.fromfile(path)


def piece(name):
    """Return a copy of the settings in a base config."""
    return deepcopy(read(FOLDER / f'_base_/{name}.py').to_dict())


@cache
def build(path):
    """Build the model of a config or base config on the meta device."""
    with on_meta_device():
        return MODELS.build(deepcopy(read(path).model))


def build_optimizer(model, recipe):
    """Build the optimizer wrapper of a model on the meta device.

    Early versions of torch fuse steps of real parameters only.
    """
    recipe = deepcopy(recipe)
    recipe.optimizer.pop('fused', None)
    return build_optim_wrapper(model, recipe)


@cache
def metafile():
    """Return the metafile entries by config name."""
    texts = [path.read_text() for path in FOLDER.glob('*/metafile.yml')]
    rows = [row for text in texts for row in yaml.safe_load(text)['Models']]
    return {row['Name']: row for row in rows}
