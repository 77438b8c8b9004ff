# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Write small checkpoints for distribution."""

import datetime
import hashlib
import io
import json
from collections.abc import Sequence
from pathlib import Path

import mmpretrain
import torch
from torch import Tensor, contiguous_format

from mmclca.utils.files import replace_bytes
from mmclca.version import __version__

from . import checksums
from .checkpoint import Checkpoint


def checkpoint_bytes(
    weights: dict[str, Tensor],
    config: str | None,
    classes: Sequence[str] | None,
) -> bytes:
    """Return a self-contained checkpoint in mmengine format.

    ``config`` is its text.
    """
    theirs = mmpretrain.__version__
    meta = dict(mmclca_version=__version__, mmpretrain_version=theirs)
    if config is not None:
        meta['cfg'] = config
    if classes is not None:
        meta['dataset_meta'] = dict(classes=tuple(classes))
    buffer = io.BytesIO()
    torch.save(dict(meta=meta, state_dict=weights), buffer)
    return buffer.getvalue()


def copy_weights(
    checkpoint: Checkpoint, no_ema: bool = False
) -> dict[str, Tensor]:
    """Copy the tensors of a checkpoint to the CPU, without shared storage.

    With EMA, mmengine stores the average as ``state_dict`` and the weights
    without EMA, for ``no_ema``, as ``ema_state_dict``. The set in use is
    printed.
    """
    weights = dict(checkpoint.weights)
    trained = {
        key.removeprefix('module.'): value
        for key, value in checkpoint.get('ema_state_dict', {}).items()
        if key.startswith('module.')
    }
    if trained:
        taken = 'weights without EMA' if no_ema else 'moving average (EMA)'
        print(f'The checkpoint has two sets of weights; using: {taken}')
    if no_ema:
        weights.update(trained)
    return {
        key: value.detach().cpu().clone(memory_format=contiguous_format)
        for key, value in weights.items()
        if isinstance(value, Tensor)
    }


def publish(
    out: Path,
    weights: dict[str, Tensor],
    config: str | None,
    classes: Sequence[str] | None,
) -> list[Path]:
    """Write weights, config text and class names; return the files.

    ``out`` is NAME.pth, NAME.safetensors, or NAME for both. The date and a
    hash are added to the names.

    Raises:
        FileExistsError: If a file exists already.
    """
    endings = [out.suffix] if out.suffix in WRITERS else [*WRITERS]
    name = out.with_suffix('').name if out.suffix in WRITERS else out.name
    date = datetime.date.today().strftime('%Y%m%d')
    paths = []
    for ending in endings:
        content = WRITERS[ending](weights, config, classes)
        digest = hashlib.sha256(content).hexdigest()[:8]
        path = out.with_name(f'{name}_{date}-{digest}{ending}')
        if path.exists():
            raise FileExistsError(f'{path} already exists; remove it first')
        replace_bytes(path, content)
        paths.append(path)
    return paths


def safetensors_bytes(
    weights: dict[str, Tensor],
    config: str | None,
    classes: Sequence[str] | None,
) -> bytes:
    """Return a safetensors file, with config and classes as metadata."""
    metadata = dict(format='pt', mmclca_version=__version__)
    if config is not None:
        metadata['config'] = config
    if classes is not None:
        metadata['classes'] = json.dumps(list(classes), ensure_ascii=False)
    return checksums.save_tensors(weights, metadata)


WRITERS = {'.pth': checkpoint_bytes, '.safetensors': safetensors_bytes}
