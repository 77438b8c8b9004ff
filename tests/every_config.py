# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""All configs and base configs, each parsed once."""

import os
import re
from copy import deepcopy
from functools import cache
from unittest.mock import patch

import pytest
import torch
import yaml
from mmengine.config import Config
from tiny_run import ROOT

from mmclca.registry import MODELS

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
    # mmpretrain reads stochastic depth rates from a tensor
    device = 'cpu' if re.search('resnet|swin', path.stem) else 'meta'
    with torch.device(device):
        return MODELS.build(deepcopy(read(path).model)).to('meta')


@cache
def metafile():
    """Return the metafile entries by config name."""
    texts = [path.read_text() for path in FOLDER.glob('*/metafile.yml')]
    rows = [row for text in texts for row in yaml.safe_load(text)['Models']]
    return {row['Name']: row for row in rows}
