# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def make(tmp_path):
    """Function to create empty files; reading a folder opens none."""

    def make(*names):
        for name in names:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).touch()
        return tmp_path

    return make


@pytest.fixture
def paint(tmp_path):
    """Function to write a random image, seeded by its number."""

    def write(name, number, size=(40, 30), **options):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        noise = np.random.default_rng(number).integers(0, 255, (4, 4, 3))
        image = Image.fromarray(noise.astype(np.uint8))
        image.resize(size, Image.Resampling.BICUBIC).save(path, **options)
        return path

    return write
