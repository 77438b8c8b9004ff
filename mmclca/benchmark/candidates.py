# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The models of a comparison, and the plain ones that they are held against.

All are configs of mmpretrain's classifiers, with random weights: timm's come
in its ``TimmClassifier``, so that every model has the same ``forward`` and
``loss``.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import torch
from mmpretrain.models.backbones import VisionTransformer

from mmclca.evaluation.cost import Cost, count_config
from mmclca.models import TokenReducer, as_reducible
from mmclca.registry import MODELS

TIMM = 'timm'
MMPRETRAIN = 'mmpretrain'
PLAIN = 'none'
METHODS = sorted(
    name
    for name, registered in MODELS.module_dict.items()
    if issubclass(registered, TokenReducer) and registered is not TokenReducer
)
KEYS = ('embed_dims', 'num_layers', 'num_heads', 'feedforward_channels')


@dataclass(frozen=True)
class Size:
    """Size of a vision transformer and of its images.

    Args:
        name (str): The ``arch`` of ``VisionTransformer``, or 'channels x
            layers' for one of its own.
        img_size (tuple[int, int]): Height and width of an image in pixels.
        embed_dims (int): Channels C.
        num_layers (int): Layers.
        num_heads (int): Heads H.
        feedforward_channels (int): Channels within the FFN.
        patch_size (int): Side of a patch in pixels. Defaults to 16.
        num_classes (int): Classes. Defaults to 80.
    """

    name: str
    img_size: tuple[int, int]
    embed_dims: int
    num_layers: int
    num_heads: int
    feedforward_channels: int
    patch_size: int = 16
    num_classes: int = 80

    @classmethod
    def of_arch(cls, arch: str, img_size: int) -> 'Size':
        """Of an ``arch`` of mmpretrain's ``VisionTransformer``."""
        settings = {k: VisionTransformer.arch_zoo[arch][k] for k in KEYS}
        return cls(arch, (img_size, img_size), **settings)

    @classmethod
    def of_config(cls, model: dict) -> 'Size':
        """Of the config of a classifier.

        Raises:
            ValueError: If its backbone is no ``VisionTransformer`` or it has
                no head.
        """
        kind = MODELS.get(model['backbone']['type'])
        if kind is None or not issubclass(kind, VisionTransformer):
            raise ValueError(
                f'{model["backbone"]["type"]} is no VisionTransformer: there '
                "is no plain ViT of timm's of the same size"
            )
        if not model.get('head'):
            raise ValueError('the model has no head: nothing is classified')
        with torch.device('meta'):
            backbone = MODELS.build(model['backbone'])
        arch = model['backbone'].get('arch', 'base')
        settings = {k: backbone.arch_settings[k] for k in KEYS}
        own = '{embed_dims} x {num_layers}'.format(**settings)
        (side,) = set(as_reducible(backbone).stride)
        return cls(
            arch if isinstance(arch, str) else own,
            tuple(backbone.img_size),
            **settings,
            patch_size=side,
            num_classes=model['head']['num_classes'],
        )

    @property
    def reduce_at(self) -> tuple[int, ...]:
        """Layers 3, 6 and 9 of twelve, and alike in deeper ones."""
        layers = {self.num_layers * quarter // 4 for quarter in (1, 2, 3)}
        return tuple(sorted(layers))

    @property
    def pixels(self) -> str:
        """Side of an image, or its height and width."""
        height, width = self.img_size
        return str(height) if height == width else f'{height} x {width}'

    def backbone(self, type: str, **options) -> dict:
        """Config of a backbone of this size."""
        return dict(
            type=type,
            arch={key: vars(self)[key] for key in KEYS},
            img_size=self.img_size,
            patch_size=self.patch_size,
            **options,
        )

    def head(self, type: str, **options) -> dict:
        """Config of a head of this size."""
        return dict(
            type=type,
            num_classes=self.num_classes,
            in_channels=self.embed_dims,
            **options,
        )


@dataclass(frozen=True)
class Candidate:
    """A model that is measured.

    Args:
        size (Size): Its size.
        method (str): Name of the reducer; ``TIMM``, ``MMPRETRAIN`` or
            ``PLAIN`` for models without one.
        config (dict): Config of the classifier.
        keep_rate (str): Its keep rate, or one per stage.
            Defaults to '', there is none.
        clca (str): What it has of CLCA: 'yes' for both, 'CLC' (the cache),
            'CLA' (the head) or 'no'. Defaults to 'no'.
        name (str): Its config file. Defaults to '', it has none.
    """

    size: Size
    method: str
    config: dict = field(compare=False, repr=False)
    keep_rate: str = ''
    clca: str = 'no'
    name: str = ''

    @property
    def label(self) -> str:
        """Method, keep rate and what it has of CLCA, in short."""
        extra = {'no': '', 'yes': '+ CLCA'}.get(self.clca, f'+ {self.clca}')
        return ' '.join(filter(None, (self.method, self.keep_rate, extra)))

    @property
    def reduce_at(self) -> tuple[int, ...]:
        """Layers that reduce."""
        layers = self.config.get('backbone', {}).get('reduce_at', ())
        return (layers,) if isinstance(layers, int) else tuple(layers)

    def cost(self) -> Cost:
        """Multiply-accumulates and tokens; timm's are those of mmpretrain's
        model of the same size."""
        if self.method == TIMM:
            return mmpretrain_vit(self.size).cost()
        return count_config(self.config)


def timm_vit(size: Size) -> Candidate:
    """timm's plain ViT with fused attention, the baseline."""
    config = dict(
        type='mmpretrain.TimmClassifier',
        model_name='vit_base_patch16_224',
        img_size=size.img_size,
        patch_size=size.patch_size,
        num_classes=size.num_classes,
        embed_dim=size.embed_dims,
        depth=size.num_layers,
        num_heads=size.num_heads,
        mlp_ratio=size.feedforward_channels / size.embed_dims,
    )
    return Candidate(size, TIMM, config)


def mmpretrain_vit(size: Size) -> Candidate:
    """mmpretrain's plain ViT."""
    kinds = 'mmpretrain.ImageClassifier', 'mmpretrain.VisionTransformer'
    return _with_linear_head(size, MMPRETRAIN, *kinds)


def plain_vit(size: Size) -> Candidate:
    """``TokenReductionViT`` without reducer and cache."""
    kinds = 'mmclca.TokenReductionClassifier', 'mmclca.TokenReductionViT'
    return _with_linear_head(size, PLAIN, *kinds)


def _with_linear_head(size, method, classifier, backbone) -> Candidate:
    config = dict(
        type=classifier,
        backbone=size.backbone(backbone),
        head=size.head('mmpretrain.LinearClsHead'),
    )
    return Candidate(size, method, config)


def reduced_vit(
    size: Size, method: str, keep_rate: float, clca: bool
) -> Candidate:
    """A method at layers 3, 6 and 9 of twelve, as in the CLCA paper.

    Args:
        size (Size): Its size.
        method (str): Name of a registered reducer.
        keep_rate (float): Its keep rate.
        clca (bool): Whether with cache (one CLR token) and CLA head.
    """
    layers = size.reduce_at
    config = plain_vit(size).config
    config['backbone'].update(
        reducer=dict(type=f'mmclca.{method}', keep_rate=keep_rate),
        reduce_at=layers,
    )
    if clca:
        read = sorted({*layers, size.num_layers - 1})
        config['backbone'].update(
            cache=dict(type='mmclca.CrossLayerCache'),
            out_indices=read,
            final_norm=False,
        )
        config['head'] = size.head('mmclca.CLAHead', num_layers=len(read))
    rate, extra = f'{keep_rate:g}', 'yes' if clca else 'no'
    return Candidate(size, method, config, rate, extra)


def of_config(name: str, model: dict) -> Candidate:
    """The classifier of a config file.

    Args:
        name (str): How the table calls it.
        model (dict): Config of the classifier.
    """
    backbone, head = model['backbone'], model['head']
    reducer = backbone.get('reducer') or {}
    ours = backbone['type'].rpartition('.')[2] == 'TokenReductionViT'
    method = reducer.get('type', PLAIN if ours else MMPRETRAIN)
    rate = reducer.get('keep_rate', 1.0) if reducer else ''
    rates = rate if isinstance(rate, list | tuple) else [rate]
    parts = ['CLC'] * bool(backbone.get('cache'))
    parts += ['CLA'] * (head['type'].rpartition('.')[2] == 'CLAHead')
    return Candidate(
        Size.of_config(model),
        method.rpartition('.')[2],
        model,
        '/'.join(map(str, rates)),
        'yes' if len(parts) == 2 else ''.join(parts) or 'no',
        name,
    )


def candidates_of(
    size: Size,
    methods: Iterable[str],
    keep_rates: Iterable[float],
    clca: Iterable[bool],
) -> list[Candidate]:
    """The models of some methods at a size, plain ones once.

    Args:
        size (Size): Their size.
        methods (Iterable[str]): Of ``METHODS``, ``MMPRETRAIN`` and ``PLAIN``.
        keep_rates (Iterable[float]): Keep rates of the reducers.
        clca (Iterable[bool]): Without CLCA (False), with it (True), or both.
    """
    plain = {MMPRETRAIN: mmpretrain_vit, PLAIN: plain_vit}
    found = [plain[name](size) for name in methods if name in plain]
    found += [
        reduced_vit(size, method, rate, extra)
        for method in methods
        if method not in plain
        for rate in keep_rates
        for extra in clca
    ]
    return found
