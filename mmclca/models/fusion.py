# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A model that classifies by several layers: configs in, configs out."""

from collections.abc import Sequence
from copy import deepcopy
from inspect import signature

from mmengine.config import ConfigDict
from mmpretrain.models.backbones import VisionTransformer

from .backbones import Reducible
from .from_config import build_on_meta, class_of, gives_layers
from .heads import LayerFusionHead
from .variants import make_reducible

# vectors that a layer gives
PARTS = dict(cls_token=1, average=1, cls_average=2)


def with_layer_fusion(
    model: dict, layers: Sequence[int] | None = None, out_type: str = 'average'
) -> dict:
    """A model that reads several layers by a :class:`LayerFusionHead`.

    Layers after the last one that is read are not built, and reductions in
    them fall away: weights of the whole network load all the same. All other
    settings of the backbone stay.

    Args:
        model (dict): Config of a classifier over a :class:`Reducible`
            backbone or mmpretrain's ``VisionTransformer``; not changed.
        layers (Sequence[int], optional): Layers, from 0, whose output is
            read. Defaults to None, the first three quarters of the depth: 0
            to 8 of twelve.
        out_type (str): What is read of a layer: 'average', the average of
            the tokens left, 'cls_token' or 'cls_average', both. Defaults to
            'average'; backbones that know CLS only give that.

    Returns:
        dict: The new config, of the type of ``model``.

    Raises:
        ValueError: If the backbone is of another kind, has no such layer, or
            does not know ``out_type``.
    """
    if out_type not in PARTS:
        raise ValueError(f'out_type={out_type!r} is not one of {list(PARTS)}')
    new = deepcopy(model)
    make_reducible(new)
    backbone = new['backbone']
    built = build_on_meta(backbone)
    if not gives_layers(class_of(backbone)):
        raise ValueError(
            f'{type(built).__name__} gives the output of its last layer only: '
            'several are read of a TokenReductionViT'
        )
    layers = _checked(layers, len(built.layers))
    _cut(backbone, built, layers[-1] + 1)
    known = signature(class_of(backbone)).parameters
    takes_any = issubclass(class_of(backbone), VisionTransformer)
    backbone['out_indices'] = layers
    if takes_any or 'final_norm' in known:
        backbone['final_norm'] = False  # the head normalizes
    if takes_any or 'out_type' in known:
        backbone['out_type'] = out_type
    elif out_type != 'cls_token':
        raise ValueError(
            f'{type(built).__name__} gives CLS only: out_type={out_type!r} '
            "is not allowed, only 'cls_token'"
        )
    new['neck'] = None
    new['head'] = _head(model.get('head') or {}, built, layers, out_type)
    return ConfigDict(new) if isinstance(model, ConfigDict) else new


def _checked(layers: Sequence[int] | None, depth: int) -> tuple[int, ...]:
    if layers is None:
        return tuple(range(max(3 * depth // 4, 1)))
    layers = tuple(layers)
    if not layers or list(layers) != sorted(set(layers) & {*range(depth)}):
        raise ValueError(
            f'layers={layers!r} must be ascending, different layers '
            f'(integers) within 0 to {depth - 1}'
        )
    return layers


def _cut(backbone: dict, built: Reducible, depth: int) -> None:
    """Leave out layers from ``depth`` on, and their reductions."""
    if depth == len(built.layers) or not isinstance(built, VisionTransformer):
        return
    backbone['depth'] = depth
    stages = [layer for layer in built.reduce_at if layer < depth]
    backbone['reduce_at'] = tuple(stages)
    if not stages:
        backbone['reducer'] = backbone['cache'] = None
        return
    reducer = backbone.get('reducer') or {}
    for name, value in reducer.items():
        if isinstance(value, Sequence) and len(value) == len(built.reduce_at):
            reducer[name] = type(value)(value[: len(stages)])


def _head(head: dict, built: Reducible, layers: tuple, out_type: str) -> dict:
    known = signature(LayerFusionHead).parameters.keys() - {'init_cfg'}
    kept = {k: v for k, v in head.items() if k in known}
    return dict(
        kept,
        type='mmclca.LayerFusionHead',
        in_channels=built.embed_dims,
        num_layers=len(layers),
        num_parts=PARTS[out_type],
    )
