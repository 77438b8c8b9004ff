# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Load trained classifiers from checkpoints, configs and model folders."""

from collections.abc import Sequence
from copy import deepcopy
from os import PathLike
from pathlib import Path

import torch
from mmengine.config import Config
from mmengine.model import BaseModel
from mmengine.registry import init_default_scope
from mmpretrain import get_model

from mmclca.building import config_errors
from mmclca.checkpoints.checkpoint import Checkpoint
from mmclca.checkpoints.gate.stored_config import (
    check_names,
    read_stored_classes,
    read_stored_config,
)
from mmclca.checkpoints.load import load
from mmclca.checkpoints.model_folder import is_checkpoint
from mmclca.checkpoints.opening import open_checkpoint
from mmclca.checkpoints.publishing import checkpoint_bytes
from mmclca.configs import (
    check_patches,
    merge_options,
    read_config,
    require_settings,
)
from mmclca.errors import Error
from mmclca.models import (
    LoRAModel,
    last_linear,
    use_safe_initializer,
    without_lora,
)
from mmclca.utils.files import read_lines, replace_bytes

# norm of averaged tokens; pre-trained weights lack it
MEAN_NORM = ('backbone.ln2.weight', 'backbone.ln2.bias')


def load_classifier(
    model: BaseModel | Config | str | PathLike | None,
    weights: str | PathLike | dict | None = None,
    options: dict = {},
    device: str | torch.device | None = None,
    new_last_layer: bool = False,
) -> BaseModel:
    """Load a trained classifier with its config and class names.

    They are stored as ``_config`` and ``_dataset_meta``, as in
    ``mmpretrain.get_model``. LoRA weights are merged into the classifier.

    Args:
        model (str | Path | Config | BaseModel | None): A fitted model folder;
            a checkpoint that contains its config; a config, its path or its
            name; or a built model of ``mmpretrain.get_model``. None: the
            config in ``weights``.
        weights (str | Path | dict, optional): The weights, if ``model`` has
            none. Defaults to None.
        options (dict): Config settings to override. Defaults to {}.
        device (str | torch.device, optional): Device. Defaults to None: the
            device of a built model, else a GPU if available.
        new_last_layer (bool): Whether the weights may lack the last layer of
            the head and the norm of averaged tokens, or have other classes.
            Defaults to False.

    Raises:
        CheckpointError: If the weights belong to another model.
        Error: If weights or parameters are missing, or the config lacks
            the model or test dataset.
    """
    classifier: BaseModel
    if isinstance(model, BaseModel | LoRAModel):
        classifier = model
        if not hasattr(classifier, '_config'):
            raise Error(
                'a built model needs its config to prepare images; build it '
                'with mmpretrain.get_model(CONFIG), or set '
                'model._config = Config(...)'
            )
    else:
        config, weights = config_and_weights(model, weights, options)
        if weights is None:
            raise Error(
                f'{config.filename or model} has no weights, so its '
                'predictions would be random; pass pretrained=CHECKPOINT'
            )
        require_settings(config, 'model', 'test_dataloader')
        check_patches(config)
        classifier = build_classifier(config)
        if not hasattr(classifier.head, 'num_classes'):
            raise Error(
                f'{type(classifier).__name__} is not a classifier; pass the '
                'config of a classifier'
            )
        device = device or ('cuda' if torch.cuda.is_available() else 'cpu')
    require_settings(classifier._config, 'test_dataloader')
    stored, source = None, 'the model'
    if weights is not None:
        if isinstance(weights, dict):
            checkpoint = Checkpoint.from_contents(weights, 'the weights')
        else:
            checkpoint = open_checkpoint(str(weights))
        is_lora = isinstance(classifier, LoRAModel)
        plain = classifier.module if is_lora else classifier
        new = (*last_layer_names(plain), *MEAN_NORM) if new_last_layer else ()
        source = load(classifier, checkpoint, may_be_new=new).source
        stored = read_stored_classes(checkpoint)
    if isinstance(classifier, LoRAModel):
        classifier = without_lora(classifier)
    names = _find_class_names(classifier, stored, source, new_last_layer)
    classifier._dataset_meta = dict(classes=names)
    return classifier if device is None else classifier.to(device)


def config_and_weights(
    model: Config | str | PathLike | None,
    weights: str | PathLike | dict | None,
    options: dict = {},
) -> tuple[Config, str | PathLike | dict | None]:
    """Find the config and the weights of a model.

    Weights with their own config are returned as an opened checkpoint, with
    LoRA merged. Weights for another config are returned as passed. ``options``
    change a copy of a passed ``Config``.

    Raises:
        Error: If both arguments are checkpoints, or a checkpoint contains
            no config.
    """
    if model is not None and not is_checkpoint(model):
        if not isinstance(model, Config):
            return read_config(model, options), weights
        config = model
    elif model is not None and weights is not None:
        raise Error(
            f'{model} and {weights} are both checkpoints; pass one of them, '
            'or a config and a checkpoint'
        )
    else:
        weights = open_checkpoint(str(weights if model is None else model))
        config = read_stored_config(weights)
        if 'module' in config.get('model', {}):
            config, weights = _without_lora(config, weights)
    if options:
        config = deepcopy(config)
        merge_options(config, options)
    return config, weights


def _without_lora(
    config: Config, checkpoint: Checkpoint
) -> tuple[Config, Checkpoint]:
    """Return the config and merged weights of the plain classifier."""
    model = build_classifier(config)
    load(model, checkpoint)
    plain = without_lora(model)
    contents = dict(meta=checkpoint.meta, state_dict=plain.state_dict())
    return plain._config, Checkpoint(contents, checkpoint.name)


def build_classifier(config: Config, start: str | None = None) -> BaseModel:
    """Build the model of a config, without its trained weights.

    ``start`` is a file with some of the weights to start from.
    """
    # mmcv finds mmpretrain's layers and transforms by the default scope
    init_default_scope('mmpretrain')
    config = deepcopy(config)
    config.model = use_safe_initializer(config.model)
    with config_errors():
        model = get_model(config, pretrained=False)
    if start is not None:
        load(model, start, strict=False)
    return model


def save_classifier(
    model: BaseModel, path: str | PathLike, classes: Sequence[str]
) -> None:
    """Write a model with its config as a checkpoint for all tools."""
    weights = {name: x.cpu() for name, x in model.state_dict().items()}
    config = model._config.pretty_text
    replace_bytes(Path(path), checkpoint_bytes(weights, config, classes))


def last_layer_names(model: BaseModel) -> list[str]:
    """Return parameter names: last layer, or whole head if it is unknown."""
    try:
        last = last_linear(model.head)
    except Error:
        last = model.head
    fitted = {id(parameter) for parameter in last.parameters()}
    return [name for name, p in model.named_parameters() if id(p) in fitted]


def _find_class_names(
    model: BaseModel, stored: list[str] | None, source: str, may_differ: bool
) -> list[str]:
    """Class names from the checkpoint, model or config, else labels.

    With ``may_differ``, return ``stored`` names from the checkpoint only if
    there is one per output of the head, else labels.
    """
    num_classes = model.head.num_classes
    if may_differ and len(stored or ()) != num_classes:  # other classes
        return [str(label) for label in range(num_classes)]
    classes = stored or vars(model).get('_dataset_meta', {}).get('classes')
    classes = classes or _classes_in(model._config.test_dataloader.dataset)
    classes = classes or [str(label) for label in range(num_classes)]
    check_names(classes, source)
    check_class_number(classes, num_classes, source)
    return list(classes)


def check_class_number(classes, num_classes: int, source: str) -> None:
    """Refuse class names if their number differs from ``num_classes``."""
    if len(classes) != num_classes:
        raise Error(
            f'{source} has {len(classes)} class names for {num_classes} '
            f'classes; set `model.head.num_classes={len(classes)}`, or use '
            'the config of its training'
        )


def _classes_in(dataset: dict):
    """Class names in the config of a dataset, or None."""
    classes = dataset.get('classes')
    if classes is None:
        return dataset.get('metainfo', {}).get('classes')
    if not isinstance(classes, str):
        return classes
    return read_lines(classes) if Path(classes).exists() else None
