# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Token reduction for models of timm and Transformers."""

from collections.abc import Sequence
from copy import deepcopy

from torch import nn

from mmclca.utils.messages import ascending, warn

from ..reduction.reducers.base import evenly
from ..variants import reducer_config
from .base import ReducedModel
from .calls import kept_hooks
from .support import reduced_class


def reduce_tokens(
    model: nn.Module,
    method: str | None = 'EViT',
    keep_rate: float | Sequence[float] | None = 0.5,
    num_tokens: Sequence[int] | None = None,
    layers: Sequence[int] | int | None = None,
    clca: bool = False,
    copy: bool = False,
    **settings: object,
) -> ReducedModel:
    """Return a model of timm or Transformers with token reduction.

    It has the same weights, classifier and kind of output; the original model
    does not change. The result is a :class:`Reducible`.

    Args:
        model (nn.Module): timm's ``VisionTransformer`` or
            ``VisionTransformerDistilled``, or ``ViTForImageClassification``,
            ``Dinov2ForImageClassification``, ``ViTModel`` or ``Dinov2Model``
            of Transformers.
        method (str, optional): Registered reducer, see :func:`list_methods`.
            Defaults to 'EViT'. None: no reduction, equal to the original.
        keep_rate (float | Sequence[float], optional): Share of tokens kept
            per stage, in (0, 1]; one number, or one per stage. Ignored if
            counts or a target cost are given. Defaults to 0.5.
        num_tokens (Sequence[int], optional): Remaining patches per stage.
            Defaults to None.
        layers (Sequence[int] | int, optional): Layers, from 0, with a
            reduction. Defaults to None, after each quarter of the depth: (3,
            6, 9) of 12.
        clca (bool): Whether to add a cache and replace the classifier by a
            CLA head, both without trained weights. Defaults to False.
        copy (bool): Whether to copy the parameters, instead of sharing those
            of the original. Defaults to False.
        **settings: Further settings of the reducer.

    Raises:
        ValueError: If the model is not supported, a layer is outside the
            depth, the method or the keep rate does not exist, or the method
            or ``clca`` needs a class token that the model lacks.
    """
    kind = reduced_class(model)
    shared = [] if copy else [*model.parameters(), *model.buffers()]
    memo = {id(tensor): tensor for tensor in shared} | kept_hooks(model)
    new = kind(deepcopy(model, memo))
    depth = len(new.layers)
    layers = sorted({*evenly(3, depth)}) if layers is None else layers
    layers = ascending('layers', layers, depth) if method or clca else ()
    if clca and not new.has_cls:
        raise ValueError(f'clca=True needs a class token: {new.why_no_cls}')
    if num_tokens is not None:
        settings['num_tokens'] = num_tokens
    if {'num_tokens', 'prune', 'merge', 'target'} & settings.keys():
        keep_rate = None
    rate = keep_rate if method else None
    config = reducer_config({}, method, rate, len(layers))
    new.reduce(config and config | settings, layers, clca)
    if clca:
        warn('the cache and the CLA head are new; train them before use')
    return new
