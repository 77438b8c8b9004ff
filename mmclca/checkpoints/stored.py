# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The config and the class names that a checkpoint file holds."""

import os

from mmengine.config import Config

from .allowed_settings import check_settings, without_training
from .plain_config import parse_plain_config
from .releases import source_of, weights_of

WEIGHTS = ('.bin', '.ckpt', '.pt', '.pth', '.safetensors')
# what a trained model does without; its teacher is in other files
UNUSED = ('pretrained', 'teacher', 'train_cfg')
LOADERS = ('train_dataloader', 'val_dataloader', 'test_dataloader')


def is_checkpoint(name) -> bool:
    """Whether a name is that of a file of weights, by its ending."""
    return isinstance(name, str | os.PathLike) and (
        str(name).lower().endswith(WEIGHTS)
    )


def stored_config(checkpoint: dict) -> Config:
    """The config that a model was trained with, out of its checkpoint.

    It is read as plain settings and not run. Only the model, its data
    preprocessor and the data sets are taken from it.

    Args:
        checkpoint (dict): As
            :func:`mmclca.checkpoints.downloading.open_checkpoint` gives it.

    Raises:
        ValueError: If there is none, or it is more than plain settings; see
            :func:`mmclca.checkpoints.allowed_settings.check_settings`.
    """
    text = stored_text(checkpoint)
    name = source_of(weights_of(checkpoint)).name
    remedy = 'give the config beside it (predict.py: --config CONFIG)'
    if text is None:
        raise ValueError(f'{name} holds no config: {remedy}')
    try:
        parts = _used(parse_plain_config(text).to_dict())
        check_settings(parts)
    except ValueError as error:
        raise ValueError(
            f'the config in {name} is not used, for it is not run as '
            f'Python is: {error}. If you trust it, {remedy}'
        ) from error
    return Config(dict(parts, default_scope='mmpretrain'))


def stored_text(checkpoint: dict) -> str | None:
    """The text of the config in a checkpoint, None where there is none.

    It is whatever who made the file wrote.

    Args:
        checkpoint (dict): See :func:`stored_config`.
    """
    text = checkpoint.get('meta', {}).get('cfg')
    return text if isinstance(text, str) else None


def stored_classes(checkpoint: dict) -> list[str] | None:
    """Class names that a checkpoint holds, None where there are none.

    Args:
        checkpoint (dict): See :func:`stored_config`.
    """
    meta = checkpoint.get('meta', {})
    return meta.get('dataset_meta', {}).get('classes')


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
