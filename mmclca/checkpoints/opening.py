# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""How mmengine opens checkpoint files once this package is imported.

No file is opened in a way that could run code which it carries: pickles with
``weights_only=True`` (mmengine falls back to running them), `.safetensors`
beside them. The name of the file travels with the weights, so that an error
can name it.
"""

import os
import re
from difflib import get_close_matches
from hashlib import sha256
from http.client import HTTPException
from pathlib import Path
from pickle import UnpicklingError
from urllib.parse import urlparse

import huggingface_hub
import safetensors.torch
import timm
import torch
from huggingface_hub.utils import HfHubHTTPError
from mmengine.dist import barrier, is_main_process
from mmengine.runner.checkpoint import CheckpointLoader

from mmclca.utils.atomic_write import replace_file

from .error import CheckpointError
from .releases import name_source, unwrap
from .safe_globals import SAFE_GLOBALS

# how torch names what a pickle must not do; 149 is the frame with which what
# pickle.dump wrote begins
UNSAFE = (
    r'GLOBAL \S+|reduce for .+|Can only (create|build) .+|'
    r'Unsupported operand 149'
)


@CheckpointLoader.register_scheme('', force=True)
def load_from_file(filename: str, map_location=None) -> dict:
    """Open a local checkpoint, a pickle of torch or ``.safetensors``.

    Args:
        filename (str): Path of the file.
        map_location (str | Callable, optional): See ``torch.load``.
            Defaults to None, the CPU.

    Returns:
        dict: The checkpoint with its weights under ``'state_dict'``, or the
        weights alone.

    Raises:
        FileNotFoundError: If there is no such file.
        CheckpointError: If it is damaged, or holds more than tensors and
            plain settings.
    """
    path = os.path.expanduser(filename)
    if os.path.isdir(path):
        raise FileNotFoundError(
            f'{filename} is a folder: name the checkpoint file in it'
        )
    if not os.path.isfile(path):
        raise FileNotFoundError(f'there is no checkpoint {filename}')
    return _open(path, filename, map_location)


def _open(path: str, source: str, map_location=None) -> dict:
    """Open the file at ``path``, known to the user as ``source``."""
    try:
        checkpoint = _read(path, map_location)
    except Exception as error:  # a damaged file raises all kinds
        reason = str(error).split('WeightsUnpickler error: ')[-1]
        unsafe = re.search(UNSAFE, reason)
        if isinstance(error, UnpicklingError) and unsafe:
            raise CheckpointError(
                f'{source} is not opened: it holds more than weights and '
                f'plain settings ({unsafe.group()}), and a pickle can run '
                'code. If you trust where it comes from, open it there with '
                'the code that wrote it, save its state dict alone, and load '
                'that'
            ) from error
        # what follows is torch's advice to open it all the same
        reason = reason.strip().partition('\n')[0].partition('. ')[0]
        raise CheckpointError(
            f'{source} ({os.path.getsize(path)} bytes) cannot be opened '
            f'({type(error).__name__}: {reason}). Is it cut short, or no '
            'checkpoint? Copy or download it again'
        ) from error
    _forget_code(checkpoint)
    return unwrap(checkpoint, source)


def _forget_code(checkpoint) -> None:
    """Drop a text that mmengine runs as Python where a training goes on.

    It asks the config of old versions for a number of GPUs; today's config is
    under another key, ``cfg``, and not read.
    """
    meta = checkpoint.get('meta') if isinstance(checkpoint, dict) else None
    if isinstance(meta, dict) and isinstance(meta.get('config'), str):
        del meta['config']


def _read(path: str, map_location) -> dict:
    if path.endswith('.safetensors'):
        return safetensors.torch.load_file(path)
    with torch.serialization.safe_globals(SAFE_GLOBALS):
        return torch.load(
            path, map_location=map_location or 'cpu', weights_only=True
        )


@CheckpointLoader.register_scheme(('http://', 'https://'), force=True)
def load_from_http(filename: str, map_location=None) -> dict:
    """Download a checkpoint once, then open it as a local file.

    It is kept in torch's cache, under its own name where that ends in a hash,
    else under one made unique.

    Args:
        filename (str): URL of a checkpoint.
        map_location (str | Callable, optional): See ``torch.load``.

    Raises:
        CheckpointError: If it cannot be fetched; see also
            :func:`load_from_file`.
    """
    name = os.path.basename(urlparse(filename).path)
    if not re.search(r'-[0-9a-f]{8,}\.', name):
        name = f'{sha256(filename.encode()).hexdigest()[:8]}-{name}'
    path = os.path.join(torch.hub.get_dir(), 'checkpoints', name)
    if is_main_process():
        _download(filename, path)
    barrier()
    _download(filename, path)  # on a machine that does not share the cache
    return _open(path, filename, map_location)


def _download(url: str, path: str) -> None:
    """Fetch a file into the cache, unless it is there."""
    if os.path.isfile(path):
        return

    def fetch(part: Path) -> None:
        try:
            torch.hub.download_url_to_file(url, part)
        except (OSError, HTTPException) as error:
            raise CheckpointError(
                f'{url} cannot be downloaded ({error}): fetch it with a '
                f'browser and give the path of the file, or put it at {path}'
            ) from error
        _open(str(part), url)  # a download that broke off is not kept

    replace_file(Path(path), fetch)


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
    if not timm.is_model_pretrained(name):
        known = timm.list_pretrained()
        close = ', '.join(get_close_matches(name, known, n=3, cutoff=0.4))
        raise CheckpointError(
            f'timm has no pretrained model {name!r}; '
            f'timm.list_pretrained() lists them. Close: {close or "none"}'
        )
    if is_main_process():
        weights = _fetch_from_timm(name)
    barrier()
    if not is_main_process():
        weights = _fetch_from_timm(name)  # from the cache
    return name_source(weights, filename)


def _fetch_from_timm(name: str) -> dict:
    try:
        _ask_hub(timm.get_pretrained_cfg(name).hf_hub_id)
        return timm.create_model(name, pretrained=True).state_dict()
    except Exception as error:  # timm and the hub raise many kinds
        file = f'{name}.safetensors'
        raise CheckpointError(
            f'timm://{name} cannot be fetched ({type(error).__name__}). By '
            'hand: on a machine with a network run\n'
            '  python -c "import timm, safetensors.torch as st; '
            f"st.save_file(timm.create_model('{name}', pretrained=True)"
            f".state_dict(), '{file}')\"\n"
            f'copy {file} here and give its path in place of timm://{name}: '
            f'--cfg-options load_from={file}'
        ) from None  # the hub's own traceback is hundreds of lines


def _ask_hub(repository: str) -> None:
    """Without a network and without a copy in the cache, fail at once.

    timm would have the hub asked a dozen times, for a minute.
    """
    if not repository:  # timm has it from elsewhere
        return
    url = huggingface_hub.hf_hub_url(repository, 'model.safetensors')
    try:
        huggingface_hub.get_hf_file_metadata(url, timeout=5)
    except HfHubHTTPError:  # it answers, timm looks for other files
        return
    except Exception:  # by its version, the hub raises requests' or httpx's
        huggingface_hub.snapshot_download(repository, local_files_only=True)
