# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Which token-reduction methods the weights of a model allow."""

from dataclasses import dataclass
from math import prod
from unittest.mock import patch

import torch
from mmengine.logging import MMLogger
from mmengine.model import BaseModel

from mmclca.models import (
    Reducible,
    TokenReducer,
    as_reducible,
    list_methods,
    reduction_of,
    with_reduction,
)
from mmclca.registry import MODELS


@dataclass(frozen=True)
class Method:
    """A way of reducing tokens that a trained model can be used with.

    Args:
        name (str): Class of the reducer.
        reduce_at (tuple[int, ...]): Layers that reduce.
        keep_rate (float): What it starts with: that of training, where
            stages differ the one that leaves as much after the last of them.
        trained (bool): Whether the model was trained with it.
        fixed (bool): Whether its weights are for that keep rate only.
    """

    name: str
    reduce_at: tuple[int, ...]
    keep_rate: float
    trained: bool = False
    fixed: bool = False

    def config(self, model: dict, keep_rate: float) -> dict:
        """The config of a model with this method at a keep rate."""
        if self.trained and keep_rate == self.keep_rate:
            return model
        return at_rate(model, self.name, keep_rate)


def at_rate(model: dict, method: str, keep_rate: float) -> dict:
    """The config of a model with a method; cache and head stay.

    Args:
        model (dict): Config of a classifier.
        method (str): Name of the reducer.
        keep_rate (float): Its keep rate, at every stage.
    """
    has = reduction_of(model)
    return with_reduction(
        model, method, keep_rate, cache=has['cache'], cla=has['cla']
    )


def methods_of(model: BaseModel) -> dict[str, Method]:
    """The methods that a trained model can be used with, by name.

    These are the one it was trained with, and all that have no parameters
    of their own, so that every weight they use is a trained one.

    Args:
        model (BaseModel): A classifier, with its config as ``_config``.

    Raises:
        ValueError: If the tokens of its backbone cannot be reduced, or there
            is no CLS among them.
    """
    backbone, config = as_reducible(model.backbone), model._config.model
    if not backbone.has_cls:
        raise ValueError(
            f'methods choose by what CLS attends to: {backbone.no_cls}'
        )
    own = [_own(backbone, config)] if backbone.reduces else []
    methods = {method.name: method for method in own}
    start = own[0].keep_rate if own else 0.5
    for name in list_methods():
        settings = at_rate(config, name, start)['backbone']
        layers = settings['reduce_at']
        if name not in methods and fits(backbone, settings):
            methods[name] = Method(name, layers, start)
    return methods


def fits(backbone: Reducible, settings: dict) -> bool:
    """Whether the weights of a backbone are all that a reducer needs.

    Args:
        backbone (Reducible): A trained backbone.
        settings (dict): Config of the backbone with that reducer.
    """
    own = backbone.reducer
    shape = dict(
        embed_dims=backbone.embed_dims,
        num_patches=own.num_patches,
        num_stages=len(settings['reduce_at']),
    )
    # a reducer that nobody has chosen warns of nothing
    quiet = patch.object(MMLogger.get_current_instance(), 'disabled', True)
    try:
        with torch.device('meta'), quiet:
            built = MODELS.build(settings['reducer'], default_args=shape)
        backbone.check_reducer(built)
    except ValueError:  # too few patches for it, or no CLS, for instance
        return False
    needed = _shapes(built)
    return not needed or (type(built) is type(own) and needed == _shapes(own))


def _shapes(reducer: TokenReducer) -> dict[str, torch.Size]:
    return {name: value.shape for name, value in reducer.state_dict().items()}


def _own(backbone: Reducible, config: dict) -> Method:
    """The method that a backbone was trained with."""
    name, rate = type(backbone.reducer).__name__, _one_rate(backbone.reducer)
    other = at_rate(config, name, 1.0 if rate < 0.75 else 0.5)
    return Method(
        name,
        backbone.reduce_at,
        rate,
        trained=True,
        fixed=not fits(backbone, other['backbone']),
    )


def _one_rate(reducer: TokenReducer) -> float:
    """The keep rate of a reducer, as one number for all stages."""
    rates = reducer.keep_rates
    num_tokens = vars(reducer).get('num_tokens')
    if num_tokens is not None:
        rates = [num_tokens[-1] / reducer.num_patches] + [1] * len(rates[1:])
    if len(set(rates)) == 1:
        return float(rates[0])
    return round(prod(rates) ** (1 / len(rates)), 2)
