# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Replace the head of a model config by one that reads several layers."""

from collections.abc import Sequence
from copy import deepcopy
from functools import cached_property
from typing import Any

from mmengine.config import ConfigDict
from mmpretrain.models.backbones import DeiT3, VisionTransformer
from mmpretrain.models.classifiers import ImageClassifier

from mmclca.errors import Error
from mmclca.registry import MODELS
from mmclca.utils.messages import check_ascending, check_choice
from mmclca.utils.meta_device import on_meta_device

from .backbones import ForeignWeights, Reducible
from .classifiers import DistilledClassifier
from .config_class import get_class
from .heads import CLAHead, DistilledHead, LayerFusionHead, replace_by_linear
from .heads.layer_heads import POOLED_PARTS


def is_reducible(model: dict) -> bool:
    """Return whether the backbone of a config supports token reduction."""
    backbone_class = get_class(model['backbone'])
    if issubclass(backbone_class, Reducible):
        return not backbone_class.why_not_reducible
    return backbone_class is VisionTransformer


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
    if issubclass(backbone_class, ForeignWeights):
        reason = backbone_class.why_not_reducible
        return f' ({reason})' if reason else ''
    if issubclass(backbone_class, VisionTransformer):
        return ' (its forward pass differs from VisionTransformer)'
    return ''


class ConfigEdit:
    """A changed copy of a classifier config with a reducible backbone.

    Args:
        model (dict): Classifier config with a :class:`Reducible` backbone or
            mmpretrain's ``VisionTransformer``; not changed.

    Attributes:
        model (dict): The copy, with types of this package.

    Raises:
        Error: If the backbone does not support token reduction.
    """

    def __init__(self, model: dict):
        self.model = deepcopy(model)
        make_reducible(self.model)

    @property
    def backbone(self) -> dict:
        """Config of the backbone in the copy."""
        return self.model['backbone']

    @cached_property
    def network(self) -> Reducible:
        """The backbone on the meta device, to read depth and channels.

        It is built once, with the settings at the first use. Only a
        constructor knows the depth: settings may name an architecture, cut
        it, or be defaults of a class in another package.
        """
        with on_meta_device():
            return MODELS.build(deepcopy(self.backbone))

    def put_cla_head(self, reduce_at: tuple[int, ...]) -> None:
        """Replace the head by a CLA head over reducing layers and the last.

        Raises:
            Error: If a CLA head cannot replace the head.
        """
        network, depth = self.network, len(self.network.layers)
        if network.default_out_indices is None:
            network.check_cla()
        layers = {*check_ascending('reduce_at', reduce_at, depth), depth - 1}
        self.backbone['out_indices'] = tuple(sorted(layers))
        if network.final_norm:
            self.backbone['final_norm'] = network.final_norm = False
        network.check_cla()
        self.model['head'] = CLAHead.replace(
            self.model.get('head'), network, num_layers=len(layers)
        )

    def remove_cla_head(self) -> None:
        """Replace a CLA head by a linear head over the last layer."""
        backbone_class: Any = get_class(self.backbone)
        self.backbone['out_indices'] = backbone_class.default_out_indices
        if 'final_norm' in self.backbone:
            self.backbone['final_norm'] = True
        is_distilled = self.network.is_distilled
        replace = DistilledHead.replace if is_distilled else replace_by_linear
        self.model['head'] = replace(self.model['head'], self.network)

    def put_layer_fusion_head(
        self, layers: Sequence[int] | None, out_type: str
    ) -> None:
        """Replace the head; see :func:`with_layer_fusion`."""
        network, backbone = self.network, self.backbone
        if network.default_out_indices is None:
            raise Error(
                f'{type(network).__name__} returns only its last layer, but '
                'several are needed; use TokenReductionViT'
            )
        depth = len(network.layers)
        if layers is None:
            layers = tuple(range(max(3 * depth // 4, 1)))
        elif not layers:
            raise Error('layers=() is empty; list some, ascending')
        layers = check_ascending('layers', layers, depth)
        if network.has_layer_features:
            self._cut(layers[-1] + 1)
            # the head normalizes
            backbone.update(final_norm=False, out_type=out_type)
        elif out_type != 'cls_token':
            raise Error(
                f'{type(network).__name__} returns only CLS, not '
                f"out_type={out_type!r}; set out_type='cls_token'"
            )
        backbone['out_indices'] = layers
        self.model['neck'] = None
        self.model['head'] = LayerFusionHead.replace(
            self.model.get('head'),
            network,
            num_layers=len(layers),
            num_parts=POOLED_PARTS[out_type],
        )

    def _cut(self, depth: int) -> None:
        """Remove the layers from ``depth`` on, and their reductions."""
        if depth == len(self.network.layers):
            return
        reduce_at = self.network.reduce_at
        stages = [layer for layer in reduce_at if layer < depth]
        self.backbone.update(depth=depth, reduce_at=tuple(stages))
        if not stages:
            self.backbone['reducer'] = self.backbone['cache'] = None
            return
        reducer = self.backbone.get('reducer') or {}
        for name, value in reducer.items():
            # one entry per stage; a text, such as the type, is not
            is_list = isinstance(value, list | tuple)
            if is_list and len(value) == len(reduce_at):
                reducer[name] = value[: len(stages)]


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
    edit = ConfigEdit(model)
    edit.put_layer_fusion_head(layers, out_type)
    new = edit.model
    return ConfigDict(new) if isinstance(model, ConfigDict) else new
