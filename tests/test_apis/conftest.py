# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
import torch
from tiny_model import write_tiny

from mmclca.apis import TokenReductionInferencer


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """Images in class folders in data, tiny.py, tiny.pth, tiny.safetensors."""
    folder = tmp_path_factory.mktemp('tiny')
    torch.manual_seed(0)
    write_tiny(folder)
    return folder


@pytest.fixture(scope='module')
def inferencer(folder):
    return TokenReductionInferencer(folder / 'tiny.pth', device='cpu')
