# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Token reduction for models of timm and Transformers."""

import re
from collections.abc import Sequence
from copy import deepcopy

from timm.models.deit import VisionTransformerDistilled
from timm.models.vision_transformer import VisionTransformer
from torch import nn

from mmclca.utils.messages import ascending, warn

from ..reduction.reducers.base import evenly
from ..variants import reducer_config
from .base import ReducedModel
from .timm_vit import PARTS, ReducedDistilledViT, ReducedViT
from .transformers_vit import ReducedTransformer

TIMM = {VisionTransformer: ReducedViT}
TIMM[VisionTransformerDistilled] = ReducedDistilledViT
TRANSFORMERS = ['Dinov2ForImageClassification', 'Dinov2Model']
TRANSFORMERS += ['ViTForImageClassification', 'ViTModel']
REASONS = {  # by pattern of the class name
    'Beit|RelPos': 'its attention has a bias per pair of patch positions',
    'Eva': 'its layers may rotate queries and keys by patch position',
    'Reduced': 'its tokens are already reduced; pass the original model',
    'SAM|Swin': 'its attention is limited to windows of the patch grid',
}


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
    kind = _reduced_class(model)
    shared = [] if copy else [*model.parameters(), *model.buffers()]
    new = kind(deepcopy(model, {id(tensor): tensor for tensor in shared}))
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


def _reduced_class(model: nn.Module) -> type[ReducedModel]:
    """Return the class for a model, or raise if it is not supported."""
    name = type(model).__name__
    if name in TRANSFORMERS and hasattr(model, 'config'):
        return ReducedTransformer
    if type(model) in TIMM:
        attns = [x for x in model.blocks.modules() if hasattr(x, 'qkv')]
        parts = {*map(type, [*model.blocks, *attns, model.attn_pool])} - PARTS
        if not parts:
            return TIMM[type(model)]
        name = f'{name} with {parts.pop().__name__}'
    found = [why for names, why in REASONS.items() if re.search(names, name)]
    expected = f'expected timm VisionTransformer, {", ".join(TRANSFORMERS)}'
    why = (*found, expected)[0]
    raise ValueError(f'the tokens of {name} cannot be reduced: {why}')
