# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""All configs, each parsed and its model built once."""

from functools import cache

import pytest
import torch
from mmengine.config import Config
from tiny_run import ROOT

from mmclca.registry import MODELS

FOLDER = ROOT / 'configs'
CONFIGS = sorted(FOLDER.glob('clca/*.py'))


def each(paths):
    return pytest.mark.parametrize('path', paths, ids=lambda path: path.stem)


@cache
def build(path):
    """The config, and its model on the meta device."""
    cfg = Config.fromfile(path)
    with torch.device('meta'):
        return cfg, MODELS.build(cfg.model)
