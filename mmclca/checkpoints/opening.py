# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""How mmengine opens checkpoint files once this package is imported.

No file is opened in a way that could run code which it carries: pickles with
``weights_only=True`` (mmengine falls back to running them), `.safetensors`
beside them. The name of the file travels with the weights, so that reports
and errors can name it.
"""

import json
import os
import re
import zipfile
from pickle import UnpicklingError

import torch
from mmengine.runner.checkpoint import CheckpointLoader
from safetensors import safe_open

from .error import CheckpointError
from .fitted import model_file
from .releases import unwrap
from .safe_globals import only_safe_globals

# how torch names what a pickle must not do; 149 is the frame with which what
# pickle.dump wrote begins
UNSAFE = (
    r'GLOBAL \S+|reduce for .+|Can only (create|build) .+|'
    r'Unsupported operand 149'
)


@CheckpointLoader.register_scheme('', force=True)
def load_from_file(
    filename: str, map_location=None, mapped: bool = False
) -> dict:
    """Open a local checkpoint, a pickle of torch or ``.safetensors``.

    Args:
        filename (str): Path of the file, or of a folder that fit wrote.
        map_location (str | Callable, optional): See ``torch.load``.
            Defaults to None, the CPU.
        mapped (bool): Whether tensors are read when they are used, and no
            sooner. Defaults to False.

    Returns:
        dict: The checkpoint with its weights under ``'state_dict'``, or the
        weights alone. Config and class names of ``.safetensors`` are in
        ``'meta'``, where mmengine has them.

    Raises:
        FileNotFoundError: If there is no such file.
        CheckpointError: If it is damaged, or holds more than tensors and
            plain settings.
    """
    path = os.path.expanduser(model_file(filename))
    if not os.path.isfile(path):
        raise FileNotFoundError(f'there is no checkpoint {filename}')
    return open_file(path, filename, map_location, mapped)


def open_file(
    path: str, name: str, map_location=None, mapped: bool = False
) -> dict:
    """Open the file at ``path``, known to the user as ``name``."""
    try:
        if path.endswith('.safetensors'):
            checkpoint = _read_safetensors(path)
        else:
            checkpoint = _read_pickle(path, map_location, mapped)
    except Exception as error:  # a damaged file raises all kinds
        raise _refusal(path, name, error) from error
    _forget_code(checkpoint)
    return unwrap(checkpoint, name)


def _read_pickle(path: str, map_location, mapped: bool):
    with only_safe_globals():
        return torch.load(
            path,
            map_location=map_location or 'cpu',
            weights_only=True,
            mmap=mapped and zipfile.is_zipfile(path),  # others cannot be
        )


def _read_safetensors(path: str) -> dict:
    """Weights alone, or with what the file tells of their model."""
    with safe_open(path, 'pt') as file:
        weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        texts = file.metadata() or {}
    meta = {}
    if 'config' in texts:
        meta['cfg'] = texts['config']
    if 'classes' in texts:
        meta['dataset_meta'] = dict(classes=json.loads(texts['classes']))
    return dict(meta=meta, state_dict=weights) if meta else weights


def _refusal(path: str, name: str, error: Exception) -> CheckpointError:
    reason = str(error).split('WeightsUnpickler error: ')[-1]
    unsafe = re.search(UNSAFE, reason)
    if isinstance(error, UnpicklingError) and unsafe:
        return CheckpointError(
            f'{name} is not opened: it holds more than weights and plain '
            f'settings ({unsafe.group()}), and a pickle can run code. If you '
            'trust where it comes from, open it there with the code that '
            'wrote it, save its state dict alone, and load that'
        )
    # what follows is torch's advice to open it all the same
    reason = reason.strip().partition('\n')[0].partition('. ')[0]
    return CheckpointError(
        f'{name} ({os.path.getsize(path)} bytes) cannot be opened '
        f'({type(error).__name__}: {reason}). Is it cut short, or no '
        'checkpoint? Copy or download it again'
    )


def _forget_code(checkpoint) -> None:
    """Drop a text that mmengine runs as Python where a training goes on.

    It asks the config of old versions for a number of GPUs; today's config is
    under another key, ``cfg``, and not read.
    """
    meta = checkpoint.get('meta') if isinstance(checkpoint, dict) else None
    if isinstance(meta, dict) and isinstance(meta.get('config'), str):
        del meta['config']
