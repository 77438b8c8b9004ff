# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))  # for `parity`


@pytest.fixture(autouse=True)
def seed():
    """Each test draws the same numbers, in whatever order they run."""
    torch.manual_seed(0)


@pytest.fixture(scope='session')
def shared():
    """Folder of real leaves and weights beside the checkout, if there."""
    folder = Path(__file__).parents[2] / 'shared'
    if not folder.is_dir():
        pytest.skip(f'{folder} is not there: no real leaves and weights')
    return folder
