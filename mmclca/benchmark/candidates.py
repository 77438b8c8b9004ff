# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The models of a comparison, and which are measured beside which.

All are configs of mmpretrain's classifiers, with random weights: timm's come
in its ``TimmClassifier``, so that every model has the same ``forward`` and
``loss``.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from mmpretrain.models.backbones import VisionTransformer
from mmpretrain.models.utils import to_2tuple

from mmclca.evaluation.cost import Cost, count_config
from mmclca.models import (
    Variant,
    as_reducible,
    fuse,
    list_methods,
    reduction_of,
)
from mmclca.models.backbones import ForeignWeights
from mmclca.models.head_variants import build_on_meta, class_of

TIMM = 'timm'
MMPRETRAIN = 'mmpretrain'
PLAIN = 'none'
ONNX, INT8 = 'ONNX', 'ONNX int8'
REDUCERS = list_methods()
PLAINS = (MMPRETRAIN, PLAIN)
KEYS = ('embed_dims', 'num_layers', 'num_heads', 'feedforward_channels')
ANY_SIZE = 224  # of images for models that take any


@dataclass(frozen=True)
class Size:
    """Size of a model and of its images.

    Args:
        name (str): The ``arch`` of ``VisionTransformer``, 'channels x layers'
            for other vision transformers, or the name of an architecture.
        img_size (tuple[int, int]): Height and width of an image in pixels.
        embed_dims (int): Channels C of a ``VisionTransformer``. Defaults to
            0: another architecture.
        num_layers (int): Layers; parallel branches count as layers. Defaults
            to 0.
        num_heads (int): Heads H. Defaults to 0.
        feedforward_channels (int): Channels within the FFN. Defaults to 0.
        patch_size (int): Side of a patch in pixels. Defaults to 16.
        num_classes (int): Classes. Defaults to 80.
    """

    name: str
    img_size: tuple[int, int]
    embed_dims: int = 0
    num_layers: int = 0
    num_heads: int = 0
    feedforward_channels: int = 0
    patch_size: int = 16
    num_classes: int = 80

    @classmethod
    def of_arch(cls, arch: str, img_size: int) -> 'Size':
        """Of an ``arch`` of mmpretrain's ``VisionTransformer``."""
        settings = {k: VisionTransformer.arch_zoo[arch][k] for k in KEYS}
        return cls(arch, (img_size, img_size), **settings)

    @classmethod
    def of_config(cls, model: dict) -> 'Size':
        """Of the config of a classifier over a ``VisionTransformer``."""
        backbone = build_on_meta(model['backbone'])
        arch = model['backbone'].get('arch', 'base')
        settings = {k: backbone.arch_settings[k] for k in KEYS}
        branches = model['backbone'].get('branches', 1)
        settings['num_layers'] *= branches
        own = '{embed_dims} x {num_layers}'.format(**settings)
        (side,) = set(as_reducible(backbone).stride)
        return cls(
            arch if isinstance(arch, str) and branches == 1 else own,
            tuple(backbone.img_size),
            **settings,
            patch_size=side,
            num_classes=model['head']['num_classes'],
        )

    @property
    def pixels(self) -> str:
        """Side of an image, or its height and width."""
        height, width = self.img_size
        return str(height) if height == width else f'{height} x {width}'

    @property
    def arch(self) -> dict:
        """The ``arch`` of a ``VisionTransformer`` of this size."""
        return {key: vars(self)[key] for key in KEYS}


def size_of(model: dict) -> Size:
    """Find the size of a classifier.

    Raises:
        ValueError: If it has no head.
    """
    if 'model_name' in model:  # a TimmClassifier
        return _size(model['model_name'], model)
    kind = class_of(model['backbone'])
    if not model.get('head'):
        raise ValueError('model.head is missing: add a classification head')
    if issubclass(kind, VisionTransformer):
        return Size.of_config(model)
    return _size(kind.__name__, model['backbone'])


def _size(name: str, settings: dict) -> Size:
    return Size(name, to_2tuple(settings.get('img_size', ANY_SIZE)))


@dataclass(frozen=True)
class Candidate:
    """A model that is measured.

    Args:
        size (Size): Its size.
        config (dict): Config of the classifier.
        variant (Variant): Its reduction. Defaults to none.
        kind (str): What it is without one: ``TIMM``, ``MMPRETRAIN`` or
            ``PLAIN``, ours. Defaults to ``PLAIN``.
        name (str): Its config file. Defaults to '', it has none.
        fused (bool): Whether what can be joined is: see
            :func:`mmclca.models.backbones.fuse`. Defaults to False.
        backend (str): ``ONNX`` or ``INT8`` in ONNX Runtime. Defaults to '',
            PyTorch.
    """

    size: Size
    config: dict = field(compare=False, repr=False)
    variant: Variant = Variant()
    kind: str = PLAIN
    name: str = ''
    fused: bool = False
    backend: str = ''

    @property
    def title(self) -> str:
        """Name of its config file or of its size, and how it runs."""
        fused = 'fused' if self.fused else ''
        words = self.name or self.size.name, fused, self.backend
        return ', '.join(filter(None, words))

    @property
    def method(self) -> str:
        """Name of the reducer, or what it is without one."""
        return self.variant.method or self.kind

    @property
    def clca(self) -> str:
        """Its parts of CLCA: 'yes' for both, 'CLC', 'CLA' or 'no'."""
        clca = self.variant.clca
        return 'yes' if clca == 'CLCA' else clca or 'no'

    @property
    def label(self) -> str:
        """Method, keep rate and what it has of CLCA, in short."""
        return self.variant.label if self.kind == PLAIN else self.kind

    @property
    def reduce_at(self) -> tuple[int, ...]:
        """Layers that reduce."""
        has_backbone = 'backbone' in self.config  # timm's have none
        return reduction_of(self.config)['reduce_at'] if has_backbone else ()

    @property
    def vit_size(self) -> Size:
        """Its size, of which there are plain ViTs.

        Raises:
            ValueError: If it is no ViT.
        """
        if not self.size.embed_dims:
            raise ValueError(
                f'{self.name} ({self.size.name}) is not a VisionTransformer: '
                'add --baseline FILE and omit mmpretrain from --methods'
            )
        return self.size

    def cost(self) -> Cost:
        """Multiply-accumulates and tokens; those of timm's plain ViT are
        those of mmpretrain's of the same size, and those of joined branches,
        which share LayerNorms, are those of the branches."""
        if self.method == TIMM and self.size.embed_dims:
            return mmpretrain_vit(self.size).cost()
        return count_config(self.config, self.size.img_size)


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
    return Candidate(size, config, kind=TIMM)


def mmpretrain_vit(size: Size) -> Candidate:
    """mmpretrain's plain ViT."""
    config = dict(
        type='mmpretrain.ImageClassifier',
        backbone=dict(
            type='mmpretrain.VisionTransformer',
            arch=size.arch,
            img_size=size.img_size,
            patch_size=size.patch_size,
        ),
        head=dict(
            type='mmpretrain.LinearClsHead',
            num_classes=size.num_classes,
            in_channels=size.embed_dims,
        ),
    )
    return of_config('', config, size)


def varied(model: Candidate, variant: Variant) -> Candidate:
    """Give a model another reduction; ``Variant()`` is the plain one."""
    return of_config(model.name, variant.apply(model.config), model.size)


def of_config(name: str, model: dict, size: Size | None = None) -> Candidate:
    """Return a classifier, with what its config says of its reduction.

    Args:
        name (str): How the table calls it.
        model (dict): Config of the classifier.
        size (Size, optional): Its size. Defaults to None: that of the built
            model.
    """
    size = size or size_of(model)
    if 'model_name' in model:  # a TimmClassifier
        return Candidate(size, model, kind=TIMM, name=name)
    ours = issubclass(class_of(model['backbone']), ForeignWeights)
    kind = PLAIN if ours else MMPRETRAIN
    return Candidate(size, model, Variant.of(model), kind, name)


def varied_candidates(
    model: Candidate,
    methods: Iterable[str],
    keep_rates: Iterable[float],
    clca: Iterable[bool],
) -> list[Candidate]:
    """Return a model with some methods, plain ones once.

    Args:
        model (Candidate): The model. ``MMPRETRAIN`` is a ViT of its size.
        methods (Iterable[str]): Of ``REDUCERS``, ``MMPRETRAIN`` and ``PLAIN``.
        keep_rates (Iterable[float]): Keep rates of the reducers.
        clca (Iterable[bool]): Without CLCA (False), with it (True), or both.
    """
    makes = {MMPRETRAIN: lambda: mmpretrain_vit(model.vit_size)}
    makes[PLAIN] = lambda: varied(model, Variant())
    found = [makes[name]() for name in methods if name in makes]
    reducers = [method for method in methods if method not in makes]
    # layers, cache and head are set once: these ask the built model
    first = model.variant.method or [*reducers, None][0]
    starts = [
        varied(model, Variant(first, cache=extra, cla=extra))
        for extra in clca
        if reducers
    ]
    found += [
        varied(one, replace(one.variant, method=method, keep_rate=rate))
        for method in reducers
        for rate in keep_rates
        for one in starts
    ]
    return found


def with_onnx(models: Iterable[Candidate]) -> list[Candidate]:
    """Models, each but timm's followed by itself in ONNX Runtime."""
    return [
        replace(model, backend=backend)
        for model in models
        for backend in ('', ONNX, INT8)
        if model.method != TIMM or not backend
    ]


def _is_fusible(model: Candidate) -> bool:
    if model.method in (TIMM, MMPRETRAIN):
        return False
    backbone = build_on_meta(model.config['backbone'])
    names = backbone.state_dict().keys()
    return fuse(backbone).state_dict().keys() != names


def plan(
    configs: Sequence[Candidate],
    baseline: Candidate | None = None,
    archs: Sequence[str] = (),
    img_sizes: Sequence[int] = (),
    fuse: bool = False,
    onnx: bool = False,
    **chosen,
) -> dict[Candidate, list[Candidate]]:
    """Put models beside their baselines, in the order of measuring.

    Args:
        configs (Sequence[Candidate]): Models.
        baseline (Candidate, optional): What all are compared with. Defaults
            to None: timm's plain ViT of the size of each.
        archs (Sequence[str]): Further sizes of ViTs. Defaults to ().
        img_sizes (Sequence[int]): Sides of their images. Defaults to ().
        fuse (bool): Whether models are measured fused, too.
            Defaults to False.
        onnx (bool): Whether they are, in ONNX Runtime. Defaults to False.
        **chosen: What models of each size have, of :func:`varied_candidates`.

    Raises:
        ValueError: If there are two of a name.
    """
    found = {baseline: list(configs)}
    if baseline is None:
        sizes = [Size.of_arch(a, side) for a in archs for side in img_sizes]
        found = {timm_vit(size): [] for size in sizes}
        for one in configs:
            found.setdefault(timm_vit(one.vit_size), []).append(one)
    for one, beside in found.items():
        start = one if baseline else mmpretrain_vit(one.size)
        beside[:0] = varied_candidates(start, **chosen)
        if fuse:
            fusible = filter(_is_fusible, [one, *beside])
            beside += [replace(model, fused=True) for model in fusible]
        _check_names([one, *beside])
        if onnx:
            beside[:] = with_onnx([one, *beside])[1:]
    return found


def _check_names(rows: list[Candidate]) -> None:
    for i, one in enumerate(rows):
        if one in rows[:i]:
            raise ValueError(
                f'two models have the name {one.title} {one.label}: omit one, '
                'or rename the config file'
            )
