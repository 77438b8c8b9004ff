# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from copy import deepcopy
from pathlib import Path

import mmengine
import torch
from mmengine.config import Config
from mmengine.runner import load_checkpoint
from mmpretrain import ImageClassificationInferencer, get_model
from torch import nn


def forget(model: nn.Module) -> None:
    """Mark all parameters of a model, for :func:`check_complete`.

    Args:
        model (nn.Module): The model, changed in place.
    """
    with torch.no_grad():
        for param in model.parameters():
            param.fill_(torch.nan)  # stays where nothing is loaded


def check_complete(model: nn.Module, checkpoint: str) -> None:
    """Refuse a model of which not all parameters were loaded.

    A head that a checkpoint lacks is drawn at random where training starts;
    predictions of such a head would be noise.

    Args:
        model (nn.Module): The model, loaded after :func:`forget`.
        checkpoint (str): What was loaded, for the message.

    Raises:
        ValueError: If parameters are missing; names them.
    """
    named = model.named_parameters()
    missing = [name for name, param in named if param.isnan().any()]
    if missing:
        raise ValueError(
            f'{checkpoint} lacks {len(missing)} parameters of the model, or '
            f'has them in another shape: {", ".join(missing[:4])}. Give the '
            'config that it was trained with; the number of classes is '
            'model.head.num_classes'
        )


def load_trained(model: nn.Module, checkpoint: str) -> dict:
    """Load a checkpoint that must hold all parameters of a model.

    Args:
        model (nn.Module): The model, changed in place.
        checkpoint (str): Path or URL of the weights.

    Returns:
        dict: The checkpoint.

    Raises:
        ValueError: If parameters are missing; names them.
    """
    forget(model)
    loaded = load_checkpoint(model, checkpoint, map_location='cpu')
    check_complete(model, checkpoint)
    return loaded


def load_inferencer(
    config: str | Config, checkpoint: str, device: str = 'cpu'
) -> ImageClassificationInferencer:
    """mmpretrain's inferencer for a trained model.

    The names of the classes come from the checkpoint, or else from the test
    data set in the config; where they are nowhere, labels stand for them.
    Images are prepared by the pipeline of that data set.

    Args:
        config (str | Config): The config of the model, or its path.
        checkpoint (str): Path or URL of the weights.
        device (str): Where to run it. Defaults to 'cpu'.

    Raises:
        ValueError: If the config has no model or no test data set, the
            checkpoint lacks parameters of the model, or the names are not as
            many as the classes of the head.
    """
    if not isinstance(config, Config):
        config = Config.fromfile(config)
    _check_config(config)
    config = deepcopy(config)
    config.model.pop('teacher', None)  # its files are not asked for
    model = get_model(config, pretrained=False)
    meta = load_trained(model, checkpoint).get('meta', {})
    classes = meta.get('dataset_meta', {}).get('classes')
    classes = classes or _classes_in(config.test_dataloader.dataset)
    num_classes = model.head.num_classes
    classes = classes or [str(label) for label in range(num_classes)]
    if len(classes) != num_classes:
        raise ValueError(
            f'{checkpoint}: {len(classes)} class names for a head of '
            f'{num_classes} classes. Set model.head.num_classes='
            f'{len(classes)}, or give the config that it was trained with'
        )
    return ImageClassificationInferencer(model, classes=classes, device=device)


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


def _classes_in(dataset: dict):
    """Class names in the config of a data set, None where there are none."""
    classes = dataset.get('classes')
    if classes is None:
        return dataset.get('metainfo', {}).get('classes')
    if not isinstance(classes, str):
        return classes
    return mmengine.list_from_file(classes) if Path(classes).exists() else None
