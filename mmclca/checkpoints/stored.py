# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The config and the class names that a checkpoint file holds."""

import json
import os

from mmengine.config import Config
from mmengine.runner.checkpoint import CheckpointLoader
from safetensors import SafetensorError, safe_open

from . import opening  # noqa: F401, opens files safely
from .allowed_settings import check_settings, without_training
from .error import CheckpointError
from .plain_config import parse_plain_config

WEIGHTS = ('.bin', '.ckpt', '.pt', '.pth', '.safetensors')
# what a trained model does without; its teacher is in other files
UNUSED = ('pretrained', 'teacher', 'train_cfg')
LOADERS = ('train_dataloader', 'val_dataloader', 'test_dataloader')


def is_checkpoint(name) -> bool:
    """Whether a name is that of a file of weights, by its ending."""
    return isinstance(name, str | os.PathLike) and (
        str(name).lower().endswith(WEIGHTS)
    )


def stored_config(checkpoint: str) -> Config:
    """The config that a model was trained with, out of its checkpoint.

    It is read as plain settings and not run. Only the model, its data
    preprocessor and the data sets are taken from it.

    Args:
        checkpoint (str): Path or URL of the weights.

    Raises:
        ValueError: If there is none, or it is more than plain settings; see
            :func:`mmclca.checkpoints.allowed_settings.check_settings`.
    """
    text = stored_text(checkpoint)
    remedy = 'give the config beside it (predict.py: --config CONFIG)'
    if text is None:
        raise ValueError(f'{checkpoint} holds no config: {remedy}')
    try:
        parts = _used(parse_plain_config(text).to_dict())
        check_settings(parts)
    except ValueError as error:
        raise ValueError(
            f'the config in {checkpoint} is not used, for it is not run as '
            f'Python is: {error}. If you trust it, {remedy}'
        ) from error
    return Config(dict(parts, default_scope='mmpretrain'))


def stored_text(checkpoint: str) -> str | None:
    """The text of the config in a checkpoint, None where there is none.

    mmengine keeps it in ``meta['cfg']``; in ``.safetensors`` files it is the
    ``config`` of their metadata. It is whatever who made the file wrote.

    Args:
        checkpoint (str): Path or URL of the weights.
    """
    text = _meta(checkpoint).get('cfg')
    return text if isinstance(text, str) else None


def _used(config: dict) -> dict:
    """The parts of a config of which models and data sets are built."""
    parts = {
        name: dict(_settings(config, name))
        for name in ('model', 'data_preprocessor', *LOADERS)
        if config.get(name) is not None
    }
    for name in UNUSED:
        parts.get('model', {}).pop(name, None)
    for name in parts.keys() & {*LOADERS}:
        parts[name] = dict(dataset=_settings(parts[name], 'dataset'))
    return without_training(parts)


def _settings(config: dict, name: str) -> dict:
    if not isinstance(config.get(name), dict):
        raise ValueError(f'{name} is no dict')
    return config[name]


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
