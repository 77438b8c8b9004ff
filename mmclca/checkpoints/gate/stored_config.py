# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Read the config and the class names stored in a checkpoint.

The config is parsed and checked, see :mod:`.plain_config` and
:mod:`.settings`. It is Python text and not JSON, because tools of mmengine
read ``meta['cfg']`` with ``Config.fromstring(text, '.py')``. Datasets open and
download files, so only their test pipeline is used.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy

from mmengine.config import Config
from mmengine.registry import init_default_scope

from mmclca.errors import Error
from mmclca.registry import MODELS

from ..checkpoint import Checkpoint, get_dict
from ..earlier_versions import convert_config
from .contents import building_within
from .plain_config import parse_plain_config
from .settings import check_settings, without_training

# model settings for training only; the teacher is in another file
UNUSED = ('pretrained', 'teacher', 'train_cfg')
PASS_CONFIG = 'pass the config file (`config`)'


def read_stored_config(checkpoint: Checkpoint) -> Config:
    """Read model, data preprocessor and test pipeline from a stored config.

    The config is parsed as plain settings and never executed.

    Raises:
        Error: If the config is missing, or contains more than plain
            settings; see :func:`.settings.check_settings`.
        CheckpointError: If the model is larger than the weights.
    """
    parts = read_stored_parts(checkpoint)
    config = Config(dict(parts, default_scope='mmpretrain'))
    if 'model' in config:  # refuse one with many more parameters
        init_default_scope('mmpretrain')
        built = deepcopy(config)  # constructors modify it
        defaults = dict(data_preprocessor=built.get('data_preprocessor'))
        with building_within(checkpoint.weights, checkpoint.name):
            MODELS.build(built.model, default_args=defaults)
    return config


def read_stored_parts(checkpoint: Checkpoint) -> dict:
    """Read the parts of a stored config for a trained model and its images.

    The size of the model is not checked, see :func:`read_stored_config`.

    Raises:
        Error: If the config is missing, or contains more than plain settings.
    """
    config_text = get_stored_text(checkpoint)
    if config_text is None:
        raise Error(f'{checkpoint.name} has no config; {PASS_CONFIG}')
    with _refusing_unsafe(checkpoint, f'if you trust it, {PASS_CONFIG}'):
        parts = select_parts(_parse(config_text))
        check_settings(parts)
    return parts


def read_stored_backbone(checkpoint: Checkpoint) -> dict | None:
    """Read the backbone settings from a stored config; None without one.

    Raises:
        Error: If the backbone is missing, or contains more than plain
            settings.
    """
    config_text = get_stored_text(checkpoint)
    if config_text is None:
        return None
    remedy = (
        'store plain settings in it with publish_model.py --config CONFIG, or '
        'use the weights alone'
    )
    with _refusing_unsafe(checkpoint, remedy):
        model = _get_dict(_parse(config_text), 'model')
        backbone = without_training(_get_dict(model, 'backbone'))
        check_settings(dict(model=dict(backbone=backbone)))
    return backbone


def get_stored_text(checkpoint: Checkpoint) -> str | None:
    """Return the config in a checkpoint as untrusted text, None without."""
    config = checkpoint.meta.get('cfg')
    return config if isinstance(config, str) else None


def read_stored_classes(checkpoint: Checkpoint) -> list[str] | None:
    """Return the class names in a checkpoint, None without.

    Raises:
        Error: If they are not a list of strings.
    """
    dataset_meta = get_dict(checkpoint.meta, 'dataset_meta')
    classes = dataset_meta.get('classes')
    if classes is None:
        return None
    check_names(classes, checkpoint.name)
    return classes


def check_names(classes, source: str) -> None:
    """Raise if class names are not a list or tuple of strings."""
    if not isinstance(classes, list | tuple) or not all(
        isinstance(name, str) for name in classes
    ):
        raise Error(
            f'{source}: class names must be a list of strings, such as '
            "['ash', 'elm']; correct them, or use the weights alone"
        )


@contextmanager
def _refusing_unsafe(checkpoint: Checkpoint, remedy: str) -> Iterator[None]:
    """Name the checkpoint and a remedy in errors about its config."""
    try:
        yield
    except Error as error:
        raise Error(
            f'the config in {checkpoint.name} is refused, because stored '
            f'configs are never executed: {error}; {remedy}'
        ) from error


def _parse(config_text: str) -> dict:
    """Parse a config; types and options get their present names."""
    return convert_config(parse_plain_config(config_text).to_dict())


def select_parts(config: dict) -> dict:
    """Return the config parts for a trained model and its images."""
    parts = {
        name: dict(_get_dict(config, name))
        for name in ('model', 'data_preprocessor')
        if config.get(name) is not None
    }
    model = parts.get('model', {})
    if isinstance(model.get('module'), dict):  # of LoRA
        model['module'] = _without_unused(model['module'])
    if model:
        parts['model'] = _without_unused(model)
    if config.get('test_dataloader') is not None:
        dataset = _get_dict(_get_dict(config, 'test_dataloader'), 'dataset')
        steps = dataset.get('pipeline', [])
        # without image names, this type opens no file
        dataset = dict(type='CustomDataset', pipeline=steps)
        parts['test_dataloader'] = dict(dataset=dataset)
    return without_training(parts)


def _without_unused(model: dict) -> dict:
    return {name: value for name, value in model.items() if name not in UNUSED}


def _get_dict(config: dict, name: str) -> dict:
    if not isinstance(config.get(name), dict):
        raise Error(f'{name} is not a dict')
    return config[name]
