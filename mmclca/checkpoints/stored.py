# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The config and the class names that a checkpoint file holds.

mmengine runs a config file as Python. A text inside a checkpoint is of
whoever made the file, as its tensors are: it is only read, and what it may
say is in a few lists.

mmengine imports what it does not know: ``type='helper'`` runs helper.py, and
so do ``conv_type``, ``norm_layer``, ``_scope_`` and others that types look
up. Models fetch weights that a setting names. What came with a download must
do none of this, so whatever is not listed here is refused: types by the
setting that holds them, and texts by their name. Of datasets, which open
files and download, only the test pipeline is read.
"""

from collections.abc import Callable
from copy import deepcopy

from mmengine.config import Config
from mmengine.logging import MMLogger
from mmengine.registry import init_default_scope

from mmclca.registry import MODELS

from .contents import building_within
from .opening import dict_in
from .plain_config import check_settings, parse_plain_config, without_training
from .releases import WeightSource, heads_of_release, source_of, weights_of

# what a trained model does without; its teacher is in other files
UNUSED = ('pretrained', 'teacher', 'train_cfg')


def stored_config(checkpoint: dict) -> Config:
    """Read the config that a model was trained with.

    The config is parsed as plain settings and never executed. Only the
    model, its data preprocessor and the pipeline of the test dataset are
    used, so a file cannot make the program open a dataset.

    Raises:
        ValueError: If there is no config, or it is more than plain settings;
            see :func:`.plain_config.check_settings`.
        CheckpointError: If the model does not match the weights.
    """
    remedy = 'pass the config file (predict.py: --config CONFIG)'
    if stored_text(checkpoint) is None:
        raise ValueError(f'{_name(checkpoint)} has no config; {remedy}')
    parts = _read(checkpoint, usable_parts, f'if you trust it, {remedy}')
    config = Config(dict(parts, default_scope='mmpretrain'))
    if 'model' in config:
        _check_model(deepcopy(config), checkpoint)  # constructors change it
    return config


def _check_model(config: Config, checkpoint: dict) -> None:
    """Refuse a model that the weights of its file do not fill."""
    init_default_scope('mmpretrain')
    defaults = dict(data_preprocessor=config.get('data_preprocessor'))
    with building_within(weights_of(checkpoint), _name(checkpoint)):
        MODELS.build(config.model, default_args=defaults)


def stored_backbone(checkpoint: dict) -> dict | None:
    """Read the settings of the backbone in a stored config.

    They are parsed as in :func:`stored_config`; the rest of the config is
    ignored.

    Returns:
        dict | None: None without a config.

    Raises:
        ValueError: If there is no backbone in it, or it is more than plain
            settings.
    """
    if stored_text(checkpoint) is None:
        return None
    remedy = (
        'store plain settings in it with publish_model.py --config CONFIG, or '
        'use the weights alone'
    )
    return _read(checkpoint, _backbone, remedy)['model']['backbone']


def stored_text(checkpoint: dict) -> str | None:
    """Find the text of the config in a checkpoint, None without.

    It is whatever who made the file wrote.
    """
    text = dict_in(checkpoint, 'meta').get('cfg')
    return text if isinstance(text, str) else None


def stored_classes(checkpoint: dict) -> list[str] | None:
    """Read the class names in a checkpoint, None without.

    Raises:
        ValueError: If they are no list of texts.
    """
    classes = dict_in(dict_in(checkpoint, 'meta'), 'dataset_meta')
    classes = classes.get('classes')
    if classes is not None:
        check_names(classes, _name(checkpoint))
    return classes


def check_names(classes, source: str) -> None:
    """Refuse class names that are not a list or tuple of strings."""
    if not isinstance(classes, list | tuple) or not all(
        isinstance(name, str) for name in classes
    ):
        raise ValueError(
            f'{source}: class names must be a list of strings, such as '
            "['ash', 'elm']; correct them, or use the weights alone"
        )


def _name(checkpoint: dict) -> str:
    return source_of(weights_of(checkpoint)).name


def _read(
    checkpoint: dict, choose: Callable[[dict], dict], remedy: str
) -> dict:
    """Choose parts of a stored config, and check them."""
    try:
        parts = choose(parse_plain_config(stored_text(checkpoint)).to_dict())
        check_settings(parts)
    except ValueError as error:
        raise ValueError(
            f'the config in {_name(checkpoint)} is refused, because stored '
            f'configs are never executed: {error}; {remedy}'
        ) from error
    return parts


def _backbone(config: dict) -> dict:
    """Take the one part of a config of which a backbone is built."""
    backbone = _settings(_settings(config, 'model'), 'backbone')
    return without_training(dict(model=dict(backbone=backbone)))


def usable_parts(config: dict) -> dict:
    """Take the parts of which models and images are made."""
    parts = {
        name: dict(_settings(config, name))
        for name in ('model', 'data_preprocessor')
        if config.get(name) is not None
    }
    model = parts.get('model', {})
    if isinstance(model.get('module'), dict):  # of LoRA
        model['module'] = _without_unused(model['module'])
    parts = dict(parts, model=_without_unused(model)) if model else parts
    if config.get('test_dataloader') is not None:
        dataset = _settings(_settings(config, 'test_dataloader'), 'dataset')
        steps = dataset.get('pipeline', [])
        # a type that opens nothing, as it names no images
        dataset = dict(type='CustomDataset', pipeline=steps)
        parts['test_dataloader'] = dict(dataset=dataset)
    return without_training(parts)


def _without_unused(model: dict) -> dict:
    return {name: x for name, x in model.items() if name not in UNUSED}


def _settings(config: dict, name: str) -> dict:
    if not isinstance(config.get(name), dict):
        raise ValueError(f'{name} is not a dict')
    return config[name]


def compare_heads(backbone, source: WeightSource) -> None:
    """Log a warning if the weights have another number of heads.

    Args:
        backbone (ForeignWeights): The backbone after loading.
        source (WeightSource): Source of the weights.
    """
    ours = vars(backbone).get('arch_settings', {}).get('num_heads')
    theirs = _stored_heads(backbone, source) or heads_of_release(
        source.keys, backbone.embed_dims, source.arch
    )
    if ours and theirs and ours != theirs:
        MMLogger.get_current_instance().warning(
            f'{source.name} was trained with {theirs} attention heads, but '
            f'this model has {ours}, so its outputs are wrong; set '
            f'arch=dict(..., num_heads={theirs})'
        )


def _stored_heads(backbone, source: WeightSource) -> int | None:
    try:
        stored = stored_backbone(dict(meta=source.meta))
    except ValueError:  # of settings that are not read
        return None
    arch = (stored or {}).get('arch')
    if isinstance(arch, str):
        arch = backbone.arch_zoo.get(arch.lower())
    return arch.get('num_heads') if isinstance(arch, dict) else None
