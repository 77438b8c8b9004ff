# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Download checkpoints from URLs and timm, and read ``.npz`` files."""

import os
import re
from hashlib import sha256
from http.client import HTTPException
from math import isqrt
from pathlib import Path
from urllib.parse import urlparse

import huggingface_hub
import numpy as np
import timm
import torch
from huggingface_hub.utils import HfHubHTTPError
from mmengine.dist import barrier, is_main_process
from timm.models import VisionTransformer
from timm.models._hub import has_hf_hub

from mmclca.utils.files import replace_file
from mmclca.utils.messages import did_you_mean

from .error import CheckpointError, DownloadError
from .gate.contents import building_within
from .opening import read_checkpoint


def download_checkpoint(url: str) -> str:
    """Download a checkpoint to torch's cache, once, and return its path.

    The file keeps its name if the name ends in a hash. Otherwise a URL hash is
    added.
    """
    name = os.path.basename(urlparse(url).path)
    if not re.search(r'-[0-9a-f]{8,}\.', name):
        name = f'{sha256(url.encode()).hexdigest()[:8]}-{name}'
    path = os.path.join(torch.hub.get_dir(), 'checkpoints', name)
    if is_main_process():
        _download(url, path)
    barrier()
    _download(url, path)  # for machines without a shared cache
    return path


def _download(url: str, path: str) -> None:
    """Download a file unless it is in the cache."""
    if os.path.isfile(path):
        return

    def fetch(part: Path) -> None:
        try:
            torch.hub.download_url_to_file(url, str(part))
        except (OSError, HTTPException) as error:
            raise CheckpointError(
                f'cannot download {url} ({error}); download it with a browser '
                f'and pass its path, or save it as {path}'
            ) from error
        # refuse an incomplete download before it enters the cache
        read_checkpoint(str(part), url)

    replace_file(Path(path), fetch)


def download_from_timm(name: str) -> dict:
    """Download pretrained weights from timm."""
    if not timm.is_model_pretrained(name):
        hint = did_you_mean(name, timm.list_pretrained(), limit=3)
        raise CheckpointError(
            f'timm has no pretrained model {name!r}{hint}; list all names '
            'with timm.list_pretrained()'
        )
    if is_main_process():
        weights = _fetch_from_timm(name)
    barrier()
    if not is_main_process():
        weights = _fetch_from_timm(name)  # from the cache
    return weights


def read_npz(path: str, size: int) -> dict:
    """Convert a ViT released by Google to timm's names.

    ``size`` is the unpacked file size in bytes.
    """
    with np.load(path) as file:
        kernel = file['embedding/kernel']
        rows = file['Transformer/posembed_input/pos_embedding'].shape[1]
        block = 'Transformer/encoderblock_'
        query = f'{block}0/MultiHeadDotProductAttention_1/query/bias'
        settings = dict(
            img_size=kernel.shape[0] * isqrt(rows - 1),
            patch_size=kernel.shape[0],
            embed_dim=kernel.shape[-1],
            depth=sum(name.startswith(block) for name in file) // 16,
            num_heads=len(file[query]),
            num_classes=file['head/bias'].size,
        )
    numbers = torch.empty(size // 4, device='meta')
    with building_within(dict(all=numbers), path):
        VisionTransformer(**settings)
    model = VisionTransformer(**settings)
    model.load_pretrained(path)
    return model.state_dict()


def _fetch_from_timm(name: str) -> dict:
    cfg = timm.get_pretrained_cfg(name)
    repository = cfg and cfg.hf_hub_id  # else hosted elsewhere
    if repository and not has_hf_hub():
        raise DownloadError(
            f'timm {timm.__version__} cannot download with huggingface_hub '
            f'{huggingface_hub.__version__}: pip install --upgrade timm'
        )
    try:
        if repository:
            _ask_hub(repository)
        return timm.create_model(name, pretrained=True).state_dict()
    except Exception as error:  # timm and the hub may raise anything
        file = f'{name}.safetensors'
        raise DownloadError(
            f'cannot download timm://{name} ({type(error).__name__}); on a '
            'machine with a network connection, run: '
            'python -c "import timm, safetensors.torch as st; '
            f"st.save_file(timm.create_model('{name}', pretrained=True)"
            f".state_dict(), '{file}')\"; "
            f'copy {file} here and use its path instead of timm://{name}'
        ) from None  # the traceback has hundreds of lines


def _ask_hub(repository: str) -> None:
    """Raise at once if the hub is unreachable and the cache lacks a copy.

    timm would try a dozen times, for a minute.
    """
    url = huggingface_hub.hf_hub_url(repository, 'model.safetensors')
    try:
        huggingface_hub.get_hf_file_metadata(url, timeout=5)
    except HfHubHTTPError:  # reachable; timm looks for other files
        return
    except Exception:  # from requests or httpx, depending on the version
        huggingface_hub.snapshot_download(repository, local_files_only=True)
