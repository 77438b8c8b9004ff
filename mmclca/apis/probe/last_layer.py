# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The last layer of a model, and all that comes before it."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from mmengine.model import BaseModel
from torch import Tensor, nn

from mmclca.models.heads import last_linear, set_last_linear
from mmclca.registry import MODELS

from ..loading import names_of_last
from ..rejection import digest, image_settings
from .classifiers import Linear

PARTS = ('backbone', 'neck', 'head')
# settings that say nothing of what the last layer reads
OF_LAST = ('num_classes', 'loss', 'topk', 'cal_acc')


def feature_key(model: BaseModel) -> str:
    """What tells models with other features from this one.

    Args:
        model (BaseModel): A classifier of ``mmpretrain.get_model``.

    Returns:
        str: See :func:`mmclca.apis.rejection.digest`: of all but the last
        layer, and so the same for any classes.
    """
    parts = model._config.model.to_dict()
    settings = image_settings(model)
    settings.update({name: parts.get(name) for name in PARTS})
    for name in ('head', 'preprocessor'):
        part = (settings[name] or {}).items()
        settings[name] = {k: v for k, v in part if k not in OF_LAST}
    last = names_of_last(model)
    weights = model.state_dict().items()
    return digest(settings, {k: v for k, v in weights if k not in last})


@torch.no_grad()
def scores_of(model: nn.Module, features: Tensor) -> Tensor:
    """Class scores by the last layer of a model.

    Args:
        model (nn.Module): A classifier.
        features (Tensor): What the layer reads (N, D).

    Returns:
        Tensor: Scores before softmax (N, K), on the CPU.
    """
    features = features.to(next(model.parameters()).device)
    last = last_linear(model.head)
    return F.linear(features, last.weight.flatten(1), last.bias).cpu()


def put_classifier(
    model: BaseModel,
    fitted: Linear,
    temperature: float,
    classes: Sequence[str],
) -> None:
    """Make a fitted classifier the last layer of a model.

    Args:
        model (BaseModel): Of ``mmpretrain.get_model``, changed in place, as
            is its ``_config``.
        fitted (Linear): The classifier.
        temperature (float): What its scores are divided by.
        classes (Sequence[str]): Names of the classes.
    """
    _set_number_of_classes(model, len(classes))
    weight, bias = fitted
    set_last_linear(model.head, weight / temperature, bias / temperature)
    model._dataset_meta = dict(classes=list(classes))


def _set_number_of_classes(model: BaseModel, number: int) -> None:
    """A head with another last layer; the rest of it stays."""
    config = model._config
    config.model.head.num_classes = number
    for settings in (config, config.model):
        if 'num_classes' in (settings.get('data_preprocessor') or {}):
            settings.data_preprocessor.num_classes = number
    last = {name.removeprefix('head.') for name in names_of_last(model)}
    kept = model.head.state_dict()
    device = next(model.parameters()).device
    model.head = MODELS.build(config.model.head).to(device).eval()
    kept = {name: kept[name] for name in kept if name not in last}
    model.head.load_state_dict(kept, strict=False)
