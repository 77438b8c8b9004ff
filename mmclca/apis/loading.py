# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from os import PathLike
from pathlib import Path

from mmengine.config import Config
from mmengine.model import BaseModel
from mmengine.registry import init_default_scope
from mmpretrain import get_model

from mmclca.checkpoints.downloading import open_checkpoint
from mmclca.checkpoints.fitted import is_checkpoint
from mmclca.checkpoints.loading import load_trained
from mmclca.checkpoints.stored import (
    check_names,
    stored_classes,
    stored_config,
)
from mmclca.configs import read_config
from mmclca.utils.reading import read_lines


def load_classifier(
    model: BaseModel | Config | str | PathLike,
    pretrained: str | PathLike | dict | None,
) -> tuple[BaseModel, list[str]]:
    """A classifier with weights, and the names of its classes.

    See :class:`TokenReductionInferencer` for the arguments.
    """
    model, pretrained = config_and_weights(model, pretrained)
    if not isinstance(model, BaseModel):
        model = build_classifier(model, pretrained)
    elif not hasattr(model, '_config'):
        raise ValueError(
            'a built model needs its config, by which images are prepared: '
            'build it with mmpretrain.get_model(CONFIG), or set '
            'model._config = Config(...)'
        )
    _check_config(model._config)
    if pretrained is None:
        return model, _class_names(model, None, 'the model')
    if not isinstance(pretrained, dict):
        pretrained = open_checkpoint(str(pretrained))
    report = load_trained(model, pretrained)
    names = _class_names(model, stored_classes(pretrained), report.source)
    return model, names


def config_and_weights(model, pretrained) -> tuple:
    """What a model is built and loaded from.

    Args:
        model (Config | str | Path | ...): A checkpoint that holds its
            config, or anything else, which comes back as it is.
        pretrained (str | Path | dict, optional): Where weights are from.

    Raises:
        ValueError: If both are checkpoints, or one holds no config.
    """
    if not is_checkpoint(model):
        return model, pretrained
    if pretrained is not None:
        raise ValueError(
            f'{model} and {pretrained} are both checkpoints: give one, or a '
            'config and one'
        )
    checkpoint = open_checkpoint(str(model))
    return stored_config(checkpoint), checkpoint


def build_classifier(
    config: Config | str | PathLike, pretrained: str | PathLike | dict | None
) -> BaseModel:
    """The model of a config, before its weights are loaded.

    Args:
        config (Config | str | Path): A config, its path or its name.
        pretrained (str | Path | dict, optional): Where the weights will be
            from.

    Raises:
        ValueError: If there are to be no weights, or the config has no model
            or no test data set.
    """
    if pretrained is None:
        name = config.filename if isinstance(config, Config) else config
        raise ValueError(
            f'{name} comes without weights, and its predictions would be '
            'noise: give pretrained=CHECKPOINT'
        )
    if not isinstance(config, Config):
        config = read_config(config)
    _check_config(config)
    # mmcv looks up layers and steps of mmpretrain in it, and imports a name
    # that it does not find
    init_default_scope('mmpretrain')
    return get_model(config, pretrained=False)


def _check_config(config: Config) -> None:
    wanted = {
        'model': "model=dict(type='mmclca.TokenReductionClassifier', ...)",
        'test_dataloader': 'test_dataloader=dict(dataset=dict(pipeline=[...]))'
        ', by whose pipeline images are prepared',
    }
    missing = [name for name in wanted if config.get(name) is None]
    if missing:
        raise ValueError(
            f'{config.filename or "the config"} has no '
            f'{" and no ".join(missing)}: give the config that the model was '
            f'trained with, or add {", and ".join(map(wanted.get, missing))}'
        )


def _class_names(model: BaseModel, stored, source: str) -> list[str]:
    """Names from the checkpoint, the model or its config, else labels."""
    num_classes = model.head.num_classes
    classes = stored or vars(model).get('_dataset_meta', {}).get('classes')
    classes = classes or _classes_in(model._config.test_dataloader.dataset)
    classes = classes or [str(label) for label in range(num_classes)]
    check_names(classes, source)
    check_number(classes, num_classes, source)
    return list(classes)


def check_number(classes, num_classes: int, source: str) -> None:
    """Refuse names that are not as many as the classes of a head."""
    if len(classes) != num_classes:
        raise ValueError(
            f'{source}: {len(classes)} class names for a head of '
            f'{num_classes} classes. Set model.head.num_classes='
            f'{len(classes)}, or give the config that it was trained with'
        )


def _classes_in(dataset: dict):
    """Class names in the config of a data set, None where there are none."""
    classes = dataset.get('classes')
    if classes is None:
        return dataset.get('metainfo', {}).get('classes')
    if not isinstance(classes, str):
        return classes
    return read_lines(classes) if Path(classes).exists() else None
