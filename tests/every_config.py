# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""All configs and the pieces that they are made of, each parsed once."""

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
BASELINES = sorted(FOLDER.glob('baselines/*.py'))
MODEL_PIECES = sorted(FOLDER.glob('_base_/models/clca-*.py'))


def each(paths):
    return pytest.mark.parametrize('path', paths, ids=lambda path: path.stem)


@cache
def read(path):
    """A config, its data in the default folder."""
    with patch.dict(os.environ):
        os.environ.pop('MMCLCA_DATA', None)
        return Config.fromfile(path)


def piece(name):
    """The settings of a file in ``_base_``, to be changed."""
    return deepcopy(read(FOLDER / f'_base_/{name}.py').to_dict())


@cache
def build(path):
    """The model of a config or of a piece, on the meta device."""
    # mmpretrain's read their rates of stochastic depth from a tensor
    device = 'cpu' if re.search('resnet|swin', path.stem) else 'meta'
    with torch.device(device):
        return MODELS.build(deepcopy(read(path).model)).to('meta')


@cache
def metafile():
    """What the metafiles say of each config, by its name."""
    texts = [path.read_text() for path in FOLDER.glob('*/metafile.yml')]
    rows = [row for text in texts for row in yaml.safe_load(text)['Models']]
    return {row['Name']: row for row in rows}
