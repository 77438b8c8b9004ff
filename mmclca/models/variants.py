# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A model with another token reduction: configs in, configs out."""

from collections.abc import Sequence
from copy import deepcopy

from mmengine.config import ConfigDict
from mmpretrain.models.backbones import DeiT3, VisionTransformer
from mmpretrain.models.classifiers import ImageClassifier

from mmclca.registry import MODELS
from mmclca.utils.known_names import not_one_of

from .backbones import ForeignWeights, Reducible
from .cla_variants import put_cla_head, remove_cla_head
from .from_config import build_on_meta, class_of
from .heads import CLAHead
from .reduction.reducers import TokenReducer
from .reduction.reducers.base import per_stage


def list_methods() -> list[str]:
    """Names of the registered reducers, as :func:`with_reduction` takes."""
    return sorted(
        name
        for name, kind in MODELS.module_dict.items()
        if issubclass(kind, TokenReducer) and kind is not TokenReducer
    )


def reduction_of(model: dict) -> dict:
    """What a model has of what :func:`with_reduction` sets.

    Args:
        model (dict): Config of a classifier.

    Returns:
        dict: ``method`` (None without a reducer), ``keep_rate`` (None where
        the config has none), ``reduce_at`` (a tuple), ``cache`` and ``cla``.

    Raises:
        ValueError: If the model has no backbone.
    """
    backbone = _backbone_of(model)
    reducer = backbone.get('reducer') or {}
    return dict(
        method=class_of(reducer).__name__ if reducer else None,
        keep_rate=reducer.get('keep_rate'),
        reduce_at=_as_tuple(backbone.get('reduce_at', ())),
        cache=backbone.get('cache') is not None,
        cla=issubclass(class_of(model.get('head')), CLAHead),
    )


def with_reduction(
    model: dict,
    method: str | None = None,
    keep_rate: float | Sequence[float] | None = None,
    reduce_at: Sequence[int] | int | None = None,
    cache: bool = False,
    cla: bool = False,
) -> dict:
    """A model with a reducer, a cache (CLC) and an aggregation head (CLA).

    What is not asked for is taken out: ``with_reduction(model)`` is the plain
    model, also where its tokens cannot be reduced. mmpretrain's
    ``VisionTransformer`` and ``ImageClassifier`` become the types of mmclca
    with the same parameters. All other settings stay.

    Args:
        model (dict): Config of a classifier, which is not changed.
        method (str, optional): Name of a registered reducer, such as 'EViT'.
            If the model has the same one, its settings stay. Defaults to
            None, no reducer.
        keep_rate (float | Sequence[float], optional): Its keep rate, or one
            per stage. Defaults to None: that of the model's reducer, or else
            the default of the method.
        reduce_at (Sequence[int] | int, optional): Layers, from 0, that
            reduce. Defaults to None: those of the model, or else those after
            the first three quarters of the depth, (3, 6, 9) of twelve.
        cache (bool): Whether to have a cache. If the model has one, its
            settings stay. Defaults to False.
        cla (bool): Whether to have a CLA head, which reads the layers
            ``reduce_at`` and the last one. If the model has one, its settings
            stay and, unless ``reduce_at`` changes, the layers that it reads.
            Defaults to False, a linear head, or a :class:`DistilledHead`
            where there is a distillation token.

    Returns:
        dict: The new config, of the type of ``model``.

    Raises:
        ValueError: If the tokens of the backbone cannot be reduced, there is
            no such method, a keep rate is not allowed, or a CLA head cannot
            take the place of the model's head.
    """
    had = reduction_of(model)
    new = deepcopy(model)
    asked = method or keep_rate or cache or cla
    if not (asked or is_reducible(new)):
        return new
    make_reducible(new)
    backbone = new['backbone']
    layers = had['reduce_at'] if reduce_at is None else _as_tuple(reduce_at)
    if not layers and (method or cache or cla):
        layers = _quarters(backbone)
    # not update(), which merges a dict into one that is there
    backbone['reducer'] = _reducer(backbone, method, keep_rate, len(layers))
    backbone['reduce_at'] = layers if method or cache else ()
    own = backbone.get('cache') or dict(type='mmclca.CrossLayerCache')
    backbone['cache'] = own if cache else None
    same_layers = reduce_at is None or layers == had['reduce_at']
    if cla and not (had['cla'] and same_layers):
        put_cla_head(new, layers)
    if had['cla'] and not cla:
        remove_cla_head(new)
    return ConfigDict(new) if isinstance(model, ConfigDict) else new


def _backbone_of(model: dict) -> dict:
    if not model.get('backbone'):
        raise ValueError(
            f'{model.get("type", "this")} has no backbone to reduce tokens '
            'in: give the config of an ImageClassifier, dict(type=..., '
            'backbone=..., head=...)'
        )
    return model['backbone']


def is_reducible(model: dict) -> bool:
    """Whether a reducer can be put into the backbone of a config."""
    kind = class_of(model['backbone'])
    return kind is VisionTransformer or issubclass(kind, Reducible)


def make_reducible(model: dict) -> None:
    """Replace mmpretrain's types by ours, which have the same parameters."""
    kind = class_of(model['backbone'])
    if kind is VisionTransformer:
        model['backbone']['type'] = 'mmclca.TokenReductionViT'
    elif not is_reducible(model):
        raise ValueError(
            f'the tokens of the backbone {kind.__name__} cannot be reduced'
            f'{_reason(kind)}: that takes a VisionTransformer of mmpretrain '
            'or a Reducible backbone, such as mmclca.TokenReductionViT'
        )
    if class_of(model) is ImageClassifier:
        model['type'] = 'mmclca.TokenReductionClassifier'


def _reason(kind: type) -> str:
    if issubclass(kind, DeiT3):
        return (
            ' (its layers leave out one norm; DeiT III is TokenReductionViT '
            'with layer_scale_init_value=1e-4, with_cls_pos=False)'
        )
    if issubclass(kind, VisionTransformer):
        return ' (its forward pass is not that of VisionTransformer)'
    if issubclass(kind, ForeignWeights):
        return f' ({kind.irreducible})'
    return ''


def _as_tuple(layers: Sequence[int] | int) -> tuple[int, ...]:
    return tuple(layers) if isinstance(layers, Sequence) else (layers,)


def _quarters(backbone: dict) -> tuple[int, ...]:
    depth = len(build_on_meta(backbone).layers)
    return tuple(sorted({depth * quarter // 4 for quarter in (1, 2, 3)}))


def _reducer(
    backbone: dict, method: str | None, keep_rate, num_stages: int
) -> dict | None:
    if method is None:
        if keep_rate is not None:
            raise ValueError(
                f'keep_rate={keep_rate!r} without a method: name one of '
                f'{", ".join(list_methods())}'
            )
        return None
    own = backbone.get('reducer') or {}
    kind = _class_of_method(method)
    if own and class_of(own) is kind:
        settings = dict(own)
    else:
        settings = {k: own[k] for k in ('keep_rate',) if k in own}
        settings['type'] = method if '.' in method else f'mmclca.{method}'
    if keep_rate is not None:
        per_stage(keep_rate, num_stages)  # refuses
        settings.pop('num_tokens', None)  # it would count instead
        settings['keep_rate'] = keep_rate
    return settings


def _class_of_method(method: str) -> type:
    kind = MODELS.get(method)
    if kind is None or not issubclass(kind, TokenReducer):
        raise ValueError(f'method: {not_one_of(method, list_methods())}')
    return kind
