# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Token reduction for models of timm and Transformers."""

from collections.abc import Sequence
from copy import deepcopy
from math import prod
from numbers import Real

from torch import nn

from mmclca.errors import Error
from mmclca.utils.messages import (
    check_ascending,
    did_you_mean,
    join_first,
    warn,
)

from ..reduction.keep_rates import space_evenly
from ..reduction.reducers.base import list_settings
from ..variants import get_reducer_class, reducer_config
from .base import ReducedModel
from .calls import kept_hooks
from .support import reduced_class


def reduce_tokens(
    model: nn.Module,
    method: str | None = 'ToMe',
    keep_rate: float | Sequence[float] | None = 0.7,
    num_tokens: Sequence[int] | None = None,
    layers: Sequence[int] | int | None = None,
    clca: bool = False,
    copy: bool = False,
    **settings: object,
) -> ReducedModel:
    """Return a model of timm or Transformers with token reduction.

    It has the same weights, classifier and kind of output, and processes fewer
    tokens, so its outputs differ. The original model does not change. The
    result is a :class:`Reducible`; ``result.reducer.keep_rate`` can be
    changed.

    Args:
        model (nn.Module): timm's ``VisionTransformer``,
            ``VisionTransformerDistilled`` or ``Eva`` (DINOv3, EVA-02), or a
            ViT, DeiT, DINOv2, DINOv3, CLIP or SigLIP of Transformers, with or
            without classifier.
        method (str, optional): Registered reducer, see :func:`list_methods`.
            Defaults to 'ToMe', which needs no training and no class token.
            None: no reduction, equal to the original.
        keep_rate (float | Sequence[float], optional): Share of its input
            tokens that each layer in ``layers`` keeps, in (0, 1]; one number,
            or one per layer. Ignored if counts or a target cost are given.
            Defaults to 0.7.
        num_tokens (Sequence[int], optional): Remaining patches per stage.
            Defaults to None.
        layers (Sequence[int] | int, optional): Layers, from 0, with a
            reduction. Defaults to None, after each quarter of the depth: (3,
            6, 9) of 12.
        clca (bool): Whether to add a cache and replace the classifier by a
            CLA head, both without trained weights. Defaults to False.
        copy (bool): Whether to copy the parameters, instead of sharing those
            of the original. Defaults to False.
        **settings: Further settings of the reducer; with rotary positions,
            also those of :class:`RotarySettings`.

    Raises:
        Error: If the model is not supported, a layer is outside the
            depth, a setting does not exist or is not allowed, or the method
            or ``clca`` needs a class token that the model lacks.
    """
    model_class = reduced_class(model)
    shared = [] if copy else [*model.parameters(), *model.buffers()]
    memo = {id(tensor): tensor for tensor in shared} | kept_hooks(model)
    new = model_class(deepcopy(model, memo))
    depth = len(new.layers)
    layers = sorted({*space_evenly(3, depth)}) if layers is None else layers
    layers = check_ascending('layers', layers, depth) if method or clca else ()
    if clca and not new.has_cls:
        raise Error(f'clca=True needs a class token: {new.why_no_cls}')
    if num_tokens is not None:
        settings['num_tokens'] = num_tokens
    _check_method(method, settings, new)
    if method and settings.keys() & get_reducer_class(method).count_settings:
        keep_rate = None
    elif method and keep_rate is None:
        raise Error(
            'keep_rate=None keeps all tokens; give a rate, such as 0.7, or '
            'num_tokens'
        )
    rate = keep_rate if method else None
    config = reducer_config({}, method, rate, len(layers))
    new.reduce(config and config | settings, layers, clca)
    if clca:
        warn('the cache and the CLA head are new; train them before use')
    if [*new.reducer.parameters()]:
        warn(
            f'{type(new.reducer).__name__} has untrained parameters; train '
            'the model, or load trained weights, before use'
        )
    return new


def _check_method(method, settings: dict, model: ReducedModel) -> None:
    """Refuse an unknown method, or settings that it does not have."""
    if method is None:
        if settings:
            raise Error(f'{join_first(settings)}: set a method, too')
        return
    if not isinstance(method, str):
        hint = f'; write keep_rate={method}' * isinstance(method, Real)
        raise Error(
            f"method={method!r} must be the name of a method, such as 'ToMe', "
            f'or None{hint}'
        )
    allowed = list_settings(get_reducer_class(method))
    for name in settings.keys() - {*allowed}:
        hint = did_you_mean(name, allowed)
        if name == 'r':
            hint = _hint_for_r(settings['r'], model)
        raise Error(
            f'{method} has no setting {name!r}{hint}; choose from layers, '
            f'{", ".join(allowed)}'
        )


def _hint_for_r(r: object, model: ReducedModel) -> str:
    """Return the settings that merge r tokens in each layer, as ToMe's r."""
    depth, patches = len(model.layers), prod(model.patch_resolution)
    if not isinstance(r, int) or not 0 < r * depth < patches:
        return '; set keep_rate, or num_tokens per layer in layers'
    last = patches - r * depth
    return (
        f'; as r={r} of ToMe, set layers=range({depth}) and '
        f'num_tokens=range({patches - r}, {last - 1}, {-r})'
    )
