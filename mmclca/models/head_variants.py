# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Replace the head of a model config by one that reads several layers."""

from collections.abc import Sequence
from copy import deepcopy

import torch
from mmengine.config import ConfigDict
from mmpretrain.models.backbones import DeiT3, VisionTransformer
from mmpretrain.models.classifiers import ImageClassifier

from mmclca.errors import Error
from mmclca.registry import MODELS
from mmclca.utils.messages import check_ascending, check_choice

from .backbones import ForeignWeights, Reducible
from .classifiers import DistilledClassifier
from .config_class import get_class
from .heads import CLAHead, DistilledHead, LayerFusionHead, replace_by_linear
from .heads.layer_heads import POOLED_PARTS


def build_on_meta(backbone: dict) -> Reducible:
    """Build a backbone on the meta device, to read its depth and channels."""
    with torch.device('meta'):
        return MODELS.build(deepcopy(backbone))


def is_reducible(model: dict) -> bool:
    """Return whether the backbone of a config supports token reduction."""
    backbone_class = get_class(model['backbone'])
    is_plain_vit = backbone_class is VisionTransformer
    return is_plain_vit or issubclass(backbone_class, Reducible)


def make_reducible(model: dict) -> None:
    """Replace mmpretrain's types by mmclca's with the same parameters."""
    backbone_class = get_class(model['backbone'])
    if backbone_class is VisionTransformer:
        model['backbone']['type'] = 'mmclca.TokenReductionViT'
    elif not is_reducible(model):
        raise Error(
            f'the backbone {backbone_class.__name__} does not support token '
            f'reduction{_explain(backbone_class)}; use '
            'mmclca.TokenReductionViT'
        )
    if get_class(model) in (ImageClassifier, DistilledClassifier):
        model['type'] = 'mmclca.TokenReductionClassifier'


def _explain(backbone_class: type) -> str:
    """Return why a backbone does not support token reduction, if known."""
    if issubclass(backbone_class, DeiT3):
        return (
            ' (its layers lack one norm; DeiT III is TokenReductionViT with '
            'layer_scale_init_value=1e-4, with_cls_pos=False)'
        )
    if issubclass(backbone_class, VisionTransformer):
        return ' (its forward pass differs from VisionTransformer)'
    if issubclass(backbone_class, ForeignWeights):
        return f' ({backbone_class.why_not_reducible})'
    return ''


def put_cla_head(model: dict, reduce_at: tuple[int, ...]) -> None:
    """Replace the head by a CLA head over the reducing layers and the last.

    Raises:
        Error: If a CLA head cannot replace the head.
    """
    backbone = model['backbone']
    built = build_on_meta(backbone)
    if built.default_out_indices is None:
        built.check_cla()
    layers = sorted({*reduce_at, len(built.layers) - 1})
    backbone['out_indices'] = tuple(layers)
    if built.final_norm:
        backbone['final_norm'] = False
    build_on_meta(backbone).check_cla()
    model['head'] = CLAHead.replace(
        model.get('head'), built, num_layers=len(layers)
    )


def remove_cla_head(model: dict) -> None:
    """Replace a CLA head by a linear head over the last layer."""
    backbone = model['backbone']
    backbone_class = get_class(backbone)
    backbone['out_indices'] = backbone_class.default_out_indices
    if 'final_norm' in backbone:
        backbone['final_norm'] = True
    built = build_on_meta(backbone)
    replace = (
        DistilledHead.replace if built.is_distilled else replace_by_linear
    )
    model['head'] = replace(model['head'], built)


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
    if built.default_out_indices is None:
        raise Error(
            f'{type(built).__name__} returns only its last layer, but several '
            'are needed; use TokenReductionViT'
        )
    depth = len(built.layers)
    if layers is None:
        layers = tuple(range(max(3 * depth // 4, 1)))
    elif not layers:
        raise Error('layers=() is empty; list some, ascending')
    layers = check_ascending('layers', layers, depth)
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
    new['head'] = LayerFusionHead.replace(
        model.get('head'),
        built,
        num_layers=len(layers),
        num_parts=POOLED_PARTS[out_type],
    )
    return ConfigDict(new) if isinstance(model, ConfigDict) else new


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
