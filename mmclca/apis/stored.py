# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The config and the class names that a checkpoint file holds."""

import json
import os

from mmengine.config import Config
from mmengine.runner.checkpoint import CheckpointLoader
from safetensors import SafetensorError, safe_open

from mmclca.utils import checkpoint_loader  # noqa: F401, opens files safely
from mmclca.utils.checkpoint_error import CheckpointError
from mmclca.utils.plain_config import check_settings, parse_plain_config

WEIGHTS = ('.bin', '.ckpt', '.pt', '.pth', '.safetensors')
# parts of a config of which models and data are built
USED = (
    'default_scope',
    'model',
    'data_preprocessor',
    'train_dataloader',
    'val_dataloader',
    'test_dataloader',
)


def is_checkpoint(name) -> bool:
    """Whether a name is that of a file of weights, by its ending."""
    return isinstance(name, str | os.PathLike) and (
        str(name).lower().endswith(WEIGHTS)
    )


def stored_config(checkpoint: str) -> Config:
    """The config that a model was trained with, out of its checkpoint.

    mmengine keeps it in ``meta['cfg']``; in ``.safetensors`` files it is the
    ``config`` of their metadata. It is read as plain settings and not run,
    and what only a training uses (hooks, optimizer, ...) is left out.

    Args:
        checkpoint (str): Path or URL of the weights.

    Raises:
        ValueError: If there is none, or it is more than plain settings; see
            :func:`mmclca.utils.plain_config.check_settings`.
    """
    text = _meta(checkpoint).get('cfg')
    remedy = 'give the config beside it (predict.py: --config CONFIG)'
    if not isinstance(text, str):
        raise ValueError(f'{checkpoint} holds no config: {remedy}')
    try:
        config = parse_plain_config(text)
        parts = {name: config[name] for name in USED if name in config}
        check_settings(parts)
    except ValueError as error:
        raise ValueError(
            f'the config in {checkpoint} is not used, for it is not run as '
            f'Python is: {error}. If you trust it, {remedy}'
        ) from error
    return Config(parts)


def stored_classes(checkpoint: str, loaded: dict) -> list[str] | None:
    """Class names that a checkpoint holds, None where there are none.

    Args:
        checkpoint (str): Path or URL of the weights.
        loaded (dict): What was loaded from there.
    """
    meta = loaded.get('meta', {})
    if _is_local_safetensors(checkpoint):
        meta = _meta(checkpoint)
    return meta.get('dataset_meta', {}).get('classes')


def _meta(checkpoint: str) -> dict:
    """What a checkpoint tells of its model, as mmengine writes it."""
    if not _is_local_safetensors(checkpoint):
        loaded = CheckpointLoader.load_checkpoint(checkpoint, 'cpu')
        return loaded.get('meta', {})
    texts = _metadata(os.path.expanduser(checkpoint))
    classes = json.loads(texts.get('classes', 'null'))
    return dict(cfg=texts.get('config'), dataset_meta=dict(classes=classes))


def _is_local_safetensors(checkpoint: str) -> bool:
    return checkpoint.endswith('.safetensors') and '://' not in checkpoint


def _metadata(path: str) -> dict[str, str]:
    """Texts ahead of the tensors, which stay unread."""
    if not os.path.isfile(path):
        raise FileNotFoundError(f'there is no checkpoint {path}')
    try:
        with safe_open(path, 'pt') as file:
            return file.metadata() or {}
    except SafetensorError as error:
        raise CheckpointError(
            f'{path} cannot be opened ({error}). Is it cut short, or no '
            'checkpoint? Copy or download it again'
        ) from error
