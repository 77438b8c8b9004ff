# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Which token-reduction methods the weights of a model allow."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod

import torch
from mmengine.logging import MMLogger
from mmengine.model import BaseModel

from mmclca.benchmark.candidates import METHODS, Size
from mmclca.models import Reducible, TokenReducer
from mmclca.registry import MODELS


@dataclass(frozen=True)
class Method:
    """A way of reducing tokens that a trained model can be used with.

    Args:
        name (str): Class of the reducer.
        settings (Mapping): Its config, with its keep rate where it has been
            trained with it.
        reduce_at (tuple[int, ...]): Layers that reduce.
        keep_rate (float): What it starts with: that of training, where
            stages differ the one that leaves as much after the last of them.
        trained (bool): Whether the model was trained with it.
        fixed (bool): Whether its weights are for that keep rate only.
    """

    name: str
    settings: Mapping
    reduce_at: tuple[int, ...]
    keep_rate: float
    trained: bool = False
    fixed: bool = False

    def backbone(self, keep_rate: float) -> dict:
        """Settings of a backbone that reduces in this way."""
        reducer = dict(self.settings)
        if not (self.trained and keep_rate == self.keep_rate):
            reducer = at_rate(reducer, keep_rate)
        return dict(reducer=reducer, reduce_at=self.reduce_at)


def methods_of(model: BaseModel) -> dict[str, Method]:
    """The methods that a trained model can be used with, by name.

    These are the one it was trained with, and all that have no parameters
    of their own, so that every weight they use is a trained one.

    Args:
        model (BaseModel): A classifier, with its config as ``_config``.

    Raises:
        ValueError: If its backbone is no :class:`Reducible`, or there is no
            CLS among its tokens.
    """
    if not isinstance(model.backbone, Reducible):
        raise ValueError(
            f'the backbone is a {type(model.backbone).__name__}, whose tokens '
            'cannot be reduced: give --config with backbone=dict(type='
            "'mmclca.TokenReductionViT', ...), which takes the weights of a "
            'VisionTransformer too'
        )
    if not model.backbone.num_prefix:
        raise ValueError(
            'methods choose by what CLS attends to: with_cls_token=False is '
            'not allowed in the backbone'
        )
    backbone, settings = model.backbone, model._config.model
    trained = settings.backbone.get('reducer')
    methods = {}
    if backbone.reduces:
        methods[type(backbone.reducer).__name__] = _own(backbone, trained)
    layers = backbone.reduce_at or Size.of_config(settings).reduce_at
    start = next((m.keep_rate for m in methods.values()), 0.5)
    for name in METHODS:
        reducer = dict(type=f'mmclca.{name}', keep_rate=start)
        if name not in methods and fits(backbone, reducer, len(layers)):
            methods[name] = Method(name, reducer, layers, start)
    return methods


def fits(backbone: Reducible, reducer: dict, num_stages: int) -> bool:
    """Whether the weights of a backbone are all that a reducer needs.

    Args:
        backbone (Reducible): A trained backbone.
        reducer (dict): Config of the reducer.
        num_stages (int): Its stages.
    """
    own = backbone.reducer
    try:
        with torch.device('meta'), _nothing_logged():
            built = MODELS.build(
                reducer,
                default_args=dict(
                    embed_dims=backbone.embed_dims,
                    num_patches=own.num_patches,
                    num_stages=num_stages,
                ),
            )
    except ValueError:  # too few patches for it, for instance
        return False
    needed = _shapes(built)
    return not needed or (type(built) is type(own) and needed == _shapes(own))


@contextmanager
def _nothing_logged() -> Iterator[None]:
    """A reducer that nobody has chosen warns of nothing."""
    logger = MMLogger.get_current_instance()
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def _shapes(reducer: TokenReducer) -> dict[str, torch.Size]:
    return {name: value.shape for name, value in reducer.state_dict().items()}


def at_rate(reducer: Mapping, keep_rate: float) -> dict:
    """Config of a reducer with another keep rate, at every stage."""
    kept = {k: v for k, v in reducer.items() if k != 'num_tokens'}
    return dict(kept, keep_rate=keep_rate)


def _own(backbone: Reducible, settings: Mapping) -> Method:
    """The method that a backbone was trained with."""
    rate = _one_rate(backbone.reducer)
    other = at_rate(settings, 1.0 if rate < 0.75 else 0.5)
    num_stages = len(backbone.reduce_at)
    return Method(
        type(backbone.reducer).__name__,
        dict(settings),
        backbone.reduce_at,
        rate,
        trained=True,
        fixed=not fits(backbone, other, num_stages),
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
