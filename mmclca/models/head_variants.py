# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Replace the head of a model config by one that reads several layers."""

from collections.abc import Sequence
from copy import deepcopy
from inspect import signature

import torch
from mmengine.config import ConfigDict
from mmpretrain.models.backbones import DeiT3, VisionTransformer
from mmpretrain.models.classifiers import ImageClassifier
from mmpretrain.models.heads import ClsHead

from mmclca.errors import Error
from mmclca.registry import MODELS
from mmclca.utils.messages import check_ascending, check_choice

from .backbones import ForeignWeights, Reducible
from .heads import CLAHead, LayerFusionHead, has_class_loss


def get_class(settings: dict | None) -> type:
    """Return the class named by a config, or ``object`` for None."""
    kind = settings['type'] if settings else object
    found = kind if isinstance(kind, type) else MODELS.get(kind)
    if found is None:
        raise Error(
            f'type={kind!r} is not registered; import its module, such as '
            "with custom_imports=dict(imports=['my_module'])"
        )
    return found


def build_on_meta(backbone: dict) -> Reducible:
    """Build a backbone on the meta device, to read its depth and channels."""
    with torch.device('meta'):
        return MODELS.build(deepcopy(backbone))


def gives_layers(kind: type) -> bool:
    """Return whether a backbone class has selectable output layers."""
    named = 'out_indices' in signature(kind).parameters
    return named or issubclass(kind, VisionTransformer)


def is_reducible(model: dict) -> bool:
    """Return whether the backbone of a config supports token reduction."""
    kind = get_class(model['backbone'])
    return kind is VisionTransformer or issubclass(kind, Reducible)


def make_reducible(model: dict) -> None:
    """Replace mmpretrain's types by mmclca's with the same parameters."""
    kind = get_class(model['backbone'])
    if kind is VisionTransformer:
        model['backbone']['type'] = 'mmclca.TokenReductionViT'
    elif not is_reducible(model):
        raise Error(
            f'the backbone {kind.__name__} does not support token '
            f'reduction{_reason(kind)}; use mmclca.TokenReductionViT'
        )
    if get_class(model) is ImageClassifier:
        model['type'] = 'mmclca.TokenReductionClassifier'


def _reason(kind: type) -> str:
    if issubclass(kind, DeiT3):
        return (
            ' (its layers lack one norm; DeiT III is TokenReductionViT with '
            'layer_scale_init_value=1e-4, with_cls_pos=False)'
        )
    if issubclass(kind, VisionTransformer):
        return ' (its forward pass differs from VisionTransformer)'
    if issubclass(kind, ForeignWeights):
        return f' ({kind.why_not_reducible})'
    return ''


def put_cla_head(model: dict, reduce_at: tuple[int, ...]) -> None:
    """Replace the head by a CLA head over the reducing layers and the last.

    Raises:
        Error: If a CLA head cannot replace the head.
    """
    backbone = model['backbone']
    built = build_on_meta(backbone)
    if not gives_layers(get_class(backbone)):
        built.check_cla()
    read = sorted({*reduce_at, len(built.layers) - 1})
    backbone['out_indices'] = tuple(read)
    if built.final_norm:
        backbone['final_norm'] = False
    build_on_meta(backbone).check_cla()
    model['head'] = _cla_head(model.get('head'), built.embed_dims, len(read))


def _cla_head(head: dict | None, in_channels: int, num_layers: int) -> dict:
    """Return a CLA head config with the settings common to both heads."""
    kind = get_class(head)
    sizes = dict(in_channels=in_channels, num_layers=num_layers)
    if issubclass(kind, CLAHead):
        return dict(head, **sizes)
    if not has_class_loss(kind) or 'num_classes' not in head:
        raise Error(
            f'a CLA head cannot replace head={head}; use, for example, '
            "dict(type='LinearClsHead', num_classes=80)"
        )
    return _kept(head, CLAHead) | dict(type='mmclca.CLAHead', **sizes)


def _kept(head: dict, kind: type) -> dict:
    """Select settings that another head class accepts, without init_cfg."""
    known = {*signature(kind).parameters, *signature(ClsHead).parameters}
    return {k: v for k, v in head.items() if k in known - {'init_cfg'}}


def remove_cla_head(model: dict) -> None:
    """Replace a CLA head by a linear head over the last layer."""
    backbone, head = model['backbone'], model['head']
    arguments = signature(get_class(backbone)).parameters
    backbone['out_indices'] = arguments['out_indices'].default
    if 'final_norm' in backbone:
        backbone['final_norm'] = True
    linear = {
        k: v for k, v in head.items() if k not in ('num_layers', 'multiplier')
    }
    if build_on_meta(backbone).is_distilled:
        linear['type'] = 'mmclca.DistilledHead'
    else:
        linear.update(type='VisionTransformerClsHead', init_cfg=None)
    model['head'] = linear


# number of pooled vectors by out_type
POOLED_PARTS = dict(cls_token=1, average=1, std=1)
POOLED_PARTS.update(cls_average=2, cls_std=2, cls_average_std=3)


def with_layer_fusion(
    model: dict, layers: Sequence[int] | None = None, out_type: str = 'average'
) -> dict:
    """Return a model with a :class:`LayerFusionHead` over several layers.

    Layers after the last selected one are not built, nor are their reductions;
    weights of the full network still load. Other settings of the backbone
    stay.

    Args:
        model (dict): Classifier config with a :class:`Reducible` backbone or
            mmpretrain's ``VisionTransformer``; not changed.
        layers (Sequence[int], optional): Layers, from 0, whose output is used.
            Defaults to None, the first three quarters of the depth: 0 to 8 of
            12 layers.
        out_type (str): Features per layer: 'average' or 'std' (mean or
            standard deviation of the remaining tokens), 'cls_token', or CLS
            concatenated with one or both, 'cls_average', 'cls_std' or
            'cls_average_std'. Defaults to 'average'. Backbones that return
            only CLS need 'cls_token'.

    Returns:
        dict: The new config, typed like ``model``.

    Raises:
        Error: If the backbone is not supported, or lacks one of the
            layers or the ``out_type``.
    """
    check_choice(POOLED_PARTS, out_type=out_type)
    new = deepcopy(model)
    make_reducible(new)
    backbone = new['backbone']
    built = build_on_meta(backbone)
    if not gives_layers(get_class(backbone)):
        raise Error(
            f'{type(built).__name__} returns only its last layer, but several '
            'are needed; use TokenReductionViT'
        )
    layers = _checked(layers, len(built.layers))
    _cut(backbone, built, layers[-1] + 1)
    backbone['out_indices'] = layers
    if isinstance(built, VisionTransformer):  # the head normalizes
        backbone.update(final_norm=False, out_type=out_type)
    elif out_type != 'cls_token':
        raise Error(
            f'{type(built).__name__} returns only CLS, not '
            f"out_type={out_type!r}; set out_type='cls_token'"
        )
    new['neck'] = None
    new['head'] = dict(
        _kept(model.get('head') or {}, LayerFusionHead),
        type='mmclca.LayerFusionHead',
        in_channels=built.embed_dims,
        num_layers=len(layers),
        num_parts=POOLED_PARTS[out_type],
    )
    return ConfigDict(new) if isinstance(model, ConfigDict) else new


def _checked(layers: Sequence[int] | None, depth: int) -> tuple[int, ...]:
    if layers is None:
        return tuple(range(max(3 * depth // 4, 1)))
    if not layers:
        raise Error('layers=() is empty; list some, ascending')
    return check_ascending('layers', layers, depth)


def _cut(backbone: dict, built: Reducible, depth: int) -> None:
    """Remove the layers from ``depth`` on, and their reductions."""
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
