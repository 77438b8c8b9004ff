# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Photos, decoded once per image size."""

import numpy as np
import torch

from mmclca.datasets.batches import Preparation
from mmclca.errors import Error
from mmclca.utils.files import replace_file

BATCH = 32


def load_pixels(folder, name, paths, network, zoom=1.0):
    """Return preprocessed photos, (N, 3, H, W), uint8.

    They are stored in ``folder``, and opened as a memory map. ``zoom`` crops
    the center first.

    Raises:
        Error: If a photo cannot be read.
    """
    size = network.img_size
    suffix = '' if zoom == 1 else f'_zoom{zoom:.3f}'
    file = folder / f'{size}px{suffix}' / f'{name}.npy'
    if not file.exists():
        prepare = Preparation(network.get_config())
        pixels = np.empty((len(paths), 3, size, size), np.uint8)
        for position, path in enumerate(paths):
            prepared = prepare(path, zoom)
            if isinstance(prepared, str):
                raise Error(f'{path}: {prepared}')
            pixels[position] = prepared['inputs']
        replace_file(file, lambda part: save_array(part, pixels))
    return np.load(file, mmap_mode='r')


def save_array(path, array):
    """Write an array to exactly this path."""
    with open(path, 'wb') as file:
        np.save(file, array)


def normalize(model, pixels):
    """Return pixels (B, 3, H, W), uint8, as model input."""
    inputs = [*torch.from_numpy(np.array(pixels))]
    return model.data_preprocessor(dict(inputs=inputs))['inputs']
