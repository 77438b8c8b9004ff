# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
from tiny_model import tiny_folder

from mmclca.apis import TokenReductionInferencer

folder = tiny_folder


@pytest.fixture(scope='module')
def inferencer(folder):
    return TokenReductionInferencer(folder / 'tiny.pth', device='cpu')
