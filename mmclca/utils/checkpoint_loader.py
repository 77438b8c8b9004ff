# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""How mmengine opens checkpoint files once this package is imported.

A file is opened without running code that it may carry: `.pth` and `.pt` with
``weights_only=True`` (mmengine falls back to running it), `.safetensors`
beside them. The name of the file travels with the weights, so that an error
can name it.
"""

import argparse
import os
import pathlib
from collections import OrderedDict
from difflib import get_close_matches
from pickle import UnpicklingError

import safetensors.torch
import timm
import torch
from mmengine.dist import barrier, is_main_process
from mmengine.runner.checkpoint import CheckpointLoader, get_torch_safe_globals
from safetensors import SafetensorError

from .checkpoint_error import CheckpointError

# plain containers of settings that releases keep beside the weights
SETTINGS = [argparse.Namespace, pathlib.PosixPath]


@CheckpointLoader.register_scheme(r'(?!\w+://).*\.(pth|pt|safetensors)$')
def load_from_file(filename: str, map_location=None) -> dict:
    """Open a local ``.pth``, ``.pt`` or ``.safetensors`` file.

    Args:
        filename (str): Path of the file.
        map_location (str, optional): See ``torch.load``.

    Returns:
        dict: The checkpoint, or the state dict alone.

    Raises:
        FileNotFoundError: If there is no such file.
        CheckpointError: If it is damaged, or holds more than tensors and
            plain settings.
    """
    path = os.path.expanduser(filename)
    if not os.path.isfile(path):
        raise FileNotFoundError(f'there is no checkpoint {filename}')
    try:
        return _tag(_read(path, map_location), filename)
    except UnpicklingError as error:
        raise CheckpointError(
            f'{filename} holds more than weights, or is damaged, and is not '
            'opened, because a pickle can run code. If you trust it, save '
            f'its state dict alone and load that. torch says: {error}'
        ) from error
    except (RuntimeError, EOFError, SafetensorError, OSError) as error:
        size = os.path.getsize(path)
        raise CheckpointError(
            f'{filename} ({size} bytes) is no checkpoint or is cut short: '
            f'copy or download it again. {error}'
        ) from error


def _read(path: str, map_location) -> dict:
    if path.endswith('.safetensors'):
        device = str(map_location or 'cpu')
        return safetensors.torch.load_file(path, device=device)
    allowed = get_torch_safe_globals() + SETTINGS
    with torch.serialization.safe_globals(allowed):
        return torch.load(path, map_location=map_location, weights_only=True)


def _tag(checkpoint: dict, source: str) -> dict:
    """Unwrap ``{'model': ...}`` and note where the weights came from."""
    if not isinstance(checkpoint, dict):
        raise CheckpointError(
            f'{source} holds a {type(checkpoint).__name__}, not a dict of '
            'tensors: save model.state_dict() and load that'
        )
    if 'state_dict' in checkpoint:
        checkpoint['state_dict'] = _named(checkpoint['state_dict'], source)
        return checkpoint
    return _named(checkpoint.get('model', checkpoint), source)


def _named(state_dict: dict, source: str) -> OrderedDict:
    named = OrderedDict(state_dict)
    # torch hands the metadata of a module to its load hooks
    named._metadata = dict(getattr(state_dict, '_metadata', {}))
    for module in ('', 'backbone'):
        version = named._metadata.get(module, {})
        named._metadata[module] = dict(version, source=source)
    return named


@CheckpointLoader.register_scheme(('http://', 'https://'), force=True)
def load_from_http(filename: str, map_location=None) -> dict:
    """Download a checkpoint once, then open it as a local file.

    Args:
        filename (str): URL of a ``.pth``, ``.pt`` or ``.safetensors`` file.
        map_location (str, optional): See ``torch.load``.
    """
    folder = os.path.join(torch.hub.get_dir(), 'checkpoints')
    path = os.path.join(folder, os.path.basename(filename.split('?')[0]))
    if is_main_process() and not os.path.isfile(path):
        os.makedirs(folder, exist_ok=True)
        try:
            torch.hub.download_url_to_file(filename, path)
        except OSError as error:
            raise CheckpointError(
                f'{filename} cannot be downloaded ({error}): fetch it with a '
                f'browser and give the path of the file, or put it at {path}'
            ) from error
    barrier()
    return load_from_file(path, map_location)


@CheckpointLoader.register_scheme('timm://')
def load_from_timm(filename: str, map_location=None) -> dict:
    """Fetch pretrained weights by timm's name, ``timm://NAME``.

    Args:
        filename (str): For example
            ``timm://deit3_base_patch16_224.fb_in1k``.
        map_location (str, optional): Kept for mmengine; tensors come on the
            CPU.

    Raises:
        CheckpointError: If timm does not know the name, or cannot fetch it.
    """
    name = filename[len('timm://') :]
    known = timm.list_models(pretrained=True)
    if name not in known and name not in timm.list_models():
        close = ', '.join(get_close_matches(name, known, n=3))
        raise CheckpointError(
            f'timm has no pretrained model {name!r}; '
            f'timm.list_pretrained() lists them. Close: {close or "none"}'
        )
    try:
        model = timm.create_model(name, pretrained=True)
    except Exception as error:  # timm and the hub raise many kinds
        raise CheckpointError(
            f'{filename} cannot be fetched ({type(error).__name__}). By hand: '
            f'download model.safetensors of timm/{name} from the Hugging Face '
            'hub on a machine with a network, copy it here and give its path '
            'in place of the name, for example load_from=model.safetensors'
        ) from error
    return _named(model.state_dict(), filename)
