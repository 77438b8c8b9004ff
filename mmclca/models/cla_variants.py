# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A CLA head in a model, or none: configs in, configs out."""

from inspect import signature

from mmpretrain.models.heads import ClsHead

from .from_config import build_on_meta, class_of, gives_layers
from .heads import CLAHead, DistilledHead


def put_cla_head(model: dict, reduce_at: tuple[int, ...]) -> None:
    """Replace the head by a CLA head of these layers and the last one.

    Args:
        model (dict): Config of a classifier, changed in place.
        reduce_at (tuple[int, ...]): Layers, from 0.

    Raises:
        ValueError: If a CLA head cannot take the place of the head.
    """
    backbone = model['backbone']
    built = build_on_meta(backbone)
    if not gives_layers(class_of(backbone)):
        built.check_cla()
    read = sorted({*reduce_at, len(built.layers) - 1})
    backbone['out_indices'] = tuple(read)
    if built.final_norm:
        backbone['final_norm'] = False
    build_on_meta(backbone).check_cla()
    model['head'] = _cla_head(model.get('head'), built.embed_dims, len(read))


def _cla_head(head: dict | None, in_channels: int, num_layers: int) -> dict:
    """The head, or a CLA head with the settings that both of them know."""
    kind = class_of(head)
    sizes = dict(in_channels=in_channels, num_layers=num_layers)
    if issubclass(kind, CLAHead):
        return dict(head, **sizes)
    known_loss = ClsHead.loss, DistilledHead.loss
    own_loss = not issubclass(kind, ClsHead) or kind.loss not in known_loss
    if own_loss or 'num_classes' not in head:
        raise ValueError(
            f'a CLA head cannot take the place of head={head}: that takes '
            "num_classes and the loss of a ClsHead, such as dict(type='"
            "LinearClsHead', num_classes=80)"
        )
    known = signature(CLAHead).parameters.keys() - {'init_cfg'}
    kept = {k: v for k, v in head.items() if k in known}
    return dict(kept, type='mmclca.CLAHead', **sizes)


def remove_cla_head(model: dict) -> None:
    """Replace a CLA head by that of the last layer.

    Args:
        model (dict): Config of a classifier, changed in place.
    """
    backbone, head = model['backbone'], model['head']
    arguments = signature(class_of(backbone)).parameters
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
