# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Set or read the token reduction of a model config."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

from mmengine.config import ConfigDict

from mmclca.errors import Error
from mmclca.registry import MODELS
from mmclca.utils.messages import suggest_choices

from .config_class import get_class
from .head_variants import ConfigEdit, is_reducible, with_layer_fusion
from .heads import CLAHead
from .reduction.keep_rates import list_keep_rates, space_evenly
from .reduction.reducers import TokenReducer


@dataclass(frozen=True)
class Variant:
    """Settings in which a model differs from the plain architecture.

    Args:
        method (str, optional): Registered reducer. Defaults to None, no
            reduction.
        keep_rate (float | tuple[float], optional): Keep rate, or one per
            stage; ignored without a method. Defaults to None, see
            :func:`with_reduction`.
        img_size (int, optional): Image size in pixels. Defaults to None, the
            model's size.
        cache (bool): Whether to add a cache (CLC). Defaults to False.
        cla (bool): Whether to use a CLA head. Defaults to False.
        layers (tuple[int], optional): Input layers of a
            :class:`LayerFusionHead`, see :func:`with_layer_fusion`. Defaults
            to None, the first three quarters.
        out_type (str, optional): Features per layer for a
            :class:`LayerFusionHead`. Defaults to None, no such head.
    """

    method: str | None = None
    keep_rate: float | tuple[float, ...] | None = None
    img_size: int | None = None
    cache: bool = False
    cla: bool = False
    layers: tuple[int, ...] | None = None
    out_type: str | None = None

    @classmethod
    def from_config(cls, model: dict) -> 'Variant':
        """Read the variant from a model config.

        Args:
            model (dict): Classifier config.
        """
        reduction = get_reduction(model)
        rate = reduction['keep_rate']
        return cls(
            reduction['method'],
            tuple(rate) if isinstance(rate, list) else rate,
            cache=reduction['cache'],
            cla=reduction['cla'],
        )

    def apply(self, model: dict) -> dict:
        """Return a model config with this variant.

        Args:
            model (dict): Classifier config, which is not changed.

        Returns:
            dict: The new config, typed like ``model``.

        Raises:
            Error: See :func:`with_reduction` and
                :func:`with_layer_fusion`.
        """
        if self.img_size is not None:
            model = deepcopy(model)
            model['backbone']['img_size'] = self.img_size
        rate = self.keep_rate if self.method else None
        new = with_reduction(
            model, self.method, rate, cache=self.cache, cla=self.cla
        )
        if self.out_type is None:
            return new
        return with_layer_fusion(new, self.layers, self.out_type)

    @property
    def rates(self) -> str:
        """Keep rates as text, such as '0.7/0.5'; '' without a method."""
        if self.method is None:
            return ''
        rate = 1.0 if self.keep_rate is None else self.keep_rate
        rates = rate if isinstance(rate, tuple) else (rate,)
        return '/'.join(f'{rate:g}' for rate in rates)

    @property
    def clca(self) -> str:
        """Used parts of CLCA: 'CLCA', 'CLC' (the cache), 'CLA' or ''."""
        parts = 'C' * self.cache + 'A' * self.cla
        return parts and f'CL{parts}'

    @property
    def name(self) -> str:
        """Method, keep rates and parts of CLCA, such as 'EViT 0.5 + CLCA'."""
        clca = f'+ {self.clca}' if self.clca else ''
        parts = (self.method or 'none', self.rates, clca)
        return ' '.join(filter(None, parts))


def list_methods() -> list[str]:
    """Return the names of the registered reducers, sorted."""
    return sorted(
        name
        for name, part in MODELS.module_dict.items()
        if issubclass(part, TokenReducer) and part is not TokenReducer
    )


def get_reduction(model: dict) -> dict:
    """Read the arguments of :func:`with_reduction` from a model config.

    Args:
        model (dict): Classifier config.

    Returns:
        dict: ``method`` (None without a reducer), ``keep_rate`` (None if the
        config lacks it), ``reduce_at`` (a tuple), ``cache`` and ``cla``.

    Raises:
        Error: If the model lacks a backbone.
    """
    backbone = model.get('backbone')
    if not backbone:
        raise Error(
            f'{model.get("type", "this model")} has no backbone for token '
            'reduction; use the config of an ImageClassifier'
        )
    reducer = backbone.get('reducer') or {}
    return dict(
        method=get_class(reducer).__name__ if reducer else None,
        keep_rate=reducer.get('keep_rate'),
        reduce_at=_as_tuple(backbone.get('reduce_at', ())),
        cache=backbone.get('cache') is not None,
        cla=issubclass(get_class(model.get('head')), CLAHead),
    )


def with_reduction(
    model: dict,
    method: str | None = None,
    keep_rate: float | Sequence[float] | None = None,
    reduce_at: Sequence[int] | int | None = None,
    cache: bool = False,
    cla: bool = False,
) -> dict:
    """Return a model with a reducer, a cache (CLC) and a CLA head.

    Parts that are not requested are removed: ``with_reduction(model)`` is the
    plain model, even if the backbone does not support reduction. mmpretrain's
    ``VisionTransformer`` and ``ImageClassifier`` become mmclca's types with
    the same parameters. All other settings stay.

    Args:
        model (dict): Classifier config, which is not changed.
        method (str, optional): Registered reducer, such as 'EViT'. If the
            model already uses it, its settings stay. Defaults to None, no
            reducer.
        keep_rate (float | Sequence[float], optional): Keep rate, or one per
            stage. Defaults to None: the rate of the model's reducer, or else
            the default of the method.
        reduce_at (Sequence[int] | int, optional): Layers, from 0, with a
            reduction. Defaults to None: the layers of the model, or else the
            layers after each quarter of the depth, (3, 6, 9) of 12.
        cache (bool): Whether to add a cache. If the model has one, its
            settings stay. Defaults to False.
        cla (bool): Whether to use a CLA head over the layers ``reduce_at`` and
            the last one. If the model has one, its settings stay and, unless
            ``reduce_at`` changes, its input layers. Defaults to False, a
            linear head, or a :class:`DistilledHead` if there is a distillation
            token.

    Returns:
        dict: The new config, typed like ``model``.

    Raises:
        Error: If the backbone does not support reduction, the method is
            unknown, a keep rate is not allowed, or a CLA head cannot replace
            the model's head.
    """
    current = get_reduction(model)
    asked = method or keep_rate or cache or cla
    if not (asked or is_reducible(model)):
        return deepcopy(model)
    edit = ConfigEdit(model)
    backbone = edit.backbone
    layers = (
        current['reduce_at'] if reduce_at is None else _as_tuple(reduce_at)
    )
    if not layers and (method or cache or cla):
        depth = len(edit.network.layers)
        layers = tuple(sorted({*space_evenly(3, depth)}))
    # assign, as update() of a ConfigDict would merge the dicts
    backbone['reducer'] = reducer_config(
        backbone, method, keep_rate, len(layers)
    )
    backbone['reduce_at'] = layers if method or cache else ()
    settings = backbone.get('cache') or dict(type='mmclca.CrossLayerCache')
    backbone['cache'] = settings if cache else None
    same_layers = reduce_at is None or layers == current['reduce_at']
    if cla and not (current['cla'] and same_layers):
        edit.put_cla_head(layers)
    if current['cla'] and not cla:
        edit.remove_cla_head()
    new = edit.model
    return ConfigDict(new) if isinstance(model, ConfigDict) else new


def _as_tuple(layers: Sequence[int] | int) -> tuple[int, ...]:
    return tuple(layers) if isinstance(layers, Sequence) else (layers,)


def reducer_config(
    backbone: dict, method: str | None, keep_rate, num_stages: int
) -> dict | None:
    """Return the config of a reducer; see :func:`with_reduction`.

    Settings of the same method in the config of a backbone stay.
    """
    if method is None:
        if keep_rate is not None:
            raise Error(
                f'keep_rate={keep_rate!r} needs a method; choose one of '
                f'{", ".join(list_methods())}'
            )
        return None
    previous = backbone.get('reducer') or {}
    reducer_class = get_reducer_class(method)
    if previous and get_class(previous) is reducer_class:
        settings = dict(previous)
    else:
        settings = {k: v for k, v in previous.items() if k == 'keep_rate'}
        settings['type'] = method if '.' in method else f'mmclca.{method}'
    if keep_rate is not None:
        list_keep_rates(keep_rate, num_stages)  # raises
        for name in reducer_class.count_settings:
            settings.pop(name, None)
        settings['keep_rate'] = keep_rate
    return settings


def get_reducer_class(method: str) -> type[TokenReducer]:
    """Return the class of a method; raise Error if it is unknown."""
    reducer_class = MODELS.get(method)
    if reducer_class is None or not issubclass(reducer_class, TokenReducer):
        raise Error(f'method: {suggest_choices(method, list_methods())}')
    return reducer_class
