# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The config and the class names that a checkpoint file holds."""

from collections.abc import Callable

from mmengine.config import Config

from .allowed_settings import check_settings, without_training
from .plain_config import parse_plain_config
from .releases import source_of, weights_of

# what a trained model does without; its teacher is in other files
UNUSED = ('pretrained', 'teacher', 'train_cfg')
LOADERS = ('train_dataloader', 'val_dataloader', 'test_dataloader')


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
    remedy = 'give the config beside it (predict.py: --config CONFIG)'
    if stored_text(checkpoint) is None:
        raise ValueError(f'{_name(checkpoint)} holds no config: {remedy}')
    parts = _read(checkpoint, _used, f'If you trust it, {remedy}')
    return Config(dict(parts, default_scope='mmpretrain'))


def stored_backbone(checkpoint: dict) -> dict | None:
    """Settings of the backbone in the config of a checkpoint.

    They are read as :func:`stored_config` reads; what else is in the config
    is not looked at.

    Args:
        checkpoint (dict): See :func:`stored_config`.

    Returns:
        dict | None: None where there is no config.

    Raises:
        ValueError: If there is no backbone in it, or it is more than plain
            settings.
    """
    if stored_text(checkpoint) is None:
        return None
    remedy = (
        'Write plain settings into it (publish_model.py --config CONFIG), or '
        'give the weights alone'
    )
    return _read(checkpoint, _backbone, remedy)['model']['backbone']


def stored_text(checkpoint: dict) -> str | None:
    """The text of the config in a checkpoint, None where there is none.

    It is whatever who made the file wrote.

    Args:
        checkpoint (dict): See :func:`stored_config`.
    """
    text = _dict_in(checkpoint, 'meta').get('cfg')
    return text if isinstance(text, str) else None


def stored_classes(checkpoint: dict) -> list[str] | None:
    """Class names that a checkpoint holds, None where there are none.

    Args:
        checkpoint (dict): See :func:`stored_config`.

    Raises:
        ValueError: If they are no list of texts.
    """
    classes = _dict_in(_dict_in(checkpoint, 'meta'), 'dataset_meta')
    classes = classes.get('classes')
    if classes is not None:
        check_names(classes, _name(checkpoint))
    return classes


def check_names(classes, source: str) -> None:
    """ValueError if class names are no list or tuple of texts."""
    if not isinstance(classes, list | tuple) or not all(
        isinstance(name, str) for name in classes
    ):
        raise ValueError(
            f'{source}: its class names are no list of texts, as '
            "['ash', 'elm'] is: write them so, or give its weights alone"
        )


def _dict_in(found: dict, name: str) -> dict:
    """A part of what a file holds; empty where that is no dict."""
    part = found.get(name)
    return part if isinstance(part, dict) else {}


def _name(checkpoint: dict) -> str:
    return source_of(weights_of(checkpoint)).name


def _read(
    checkpoint: dict, choose: Callable[[dict], dict], remedy: str
) -> dict:
    """Parts of a stored config, which are checked."""
    try:
        parts = choose(parse_plain_config(stored_text(checkpoint)).to_dict())
        check_settings(parts)
    except ValueError as error:
        raise ValueError(
            f'the config in {_name(checkpoint)} is not used, for it is not '
            f'run as Python is: {error}. {remedy}'
        ) from error
    return parts


def _backbone(config: dict) -> dict:
    """The one part of a config of which a backbone is built."""
    backbone = _settings(_settings(config, 'model'), 'backbone')
    return without_training(dict(model=dict(backbone=backbone)))


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
