# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Models of a comparison and their baselines.

All models are configs of mmpretrain classifiers with random weights. timm's
models are wrapped in ``TimmClassifier``, so every model has the same
``forward`` and ``loss``.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from mmpretrain.models.backbones import VisionTransformer
from mmpretrain.models.utils import to_2tuple

from mmclca.errors import Error
from mmclca.evaluation.cost import Cost, count_config
from mmclca.models import (
    Variant,
    as_reducible,
    fuse,
    get_reduction,
    list_methods,
)
from mmclca.models.backbones import ForeignWeights
from mmclca.models.head_variants import build_on_meta, get_class

TIMM = 'timm'
MMPRETRAIN = 'mmpretrain'
PLAIN = 'none'
ONNX, INT8 = 'ONNX', 'ONNX int8'
REDUCERS = list_methods()
PLAINS = (MMPRETRAIN, PLAIN)
KEYS = ('embed_dims', 'num_layers', 'num_heads', 'feedforward_channels')
ANY_SIZE = 224  # image size for models that accept any size


@dataclass(frozen=True)
class Size:
    """Model size and image size.

    Args:
        name (str): ``arch`` of a ``VisionTransformer``, 'channels x layers'
            for other vision transformers, or the name of an architecture.
        img_size (tuple[int, int]): Image height and width in pixels.
        embed_dims (int): Embedding dimension C of a ``VisionTransformer``.
            Defaults to 0, another architecture.
        num_layers (int): Number of layers; parallel branches count as layers.
            Defaults to 0.
        num_heads (int): Number of heads H. Defaults to 0.
        feedforward_channels (int): Hidden FFN channels. Defaults to 0.
        patch_size (int): Patch size in pixels. Defaults to 16.
        num_classes (int): Number of classes. Defaults to 80.
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
        """Size for an ``arch`` of mmpretrain's ``VisionTransformer``."""
        settings = {k: VisionTransformer.arch_zoo[arch][k] for k in KEYS}
        return cls(arch, (img_size, img_size), **settings)

    @classmethod
    def of_config(cls, model: dict) -> 'Size':
        """Size of a classifier with a ``VisionTransformer`` backbone."""
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
        """Image size as text; height and width if they differ."""
        height, width = self.img_size
        return str(height) if height == width else f'{height} x {width}'

    @property
    def arch(self) -> dict:
        """``arch`` dict of a ``VisionTransformer`` with this size."""
        return {key: vars(self)[key] for key in KEYS}


def size_of(model: dict) -> Size:
    """Size of the classifier in a config; raises if its head is missing."""
    if 'model_name' in model:  # a TimmClassifier
        return _size(model['model_name'], model)
    kind = get_class(model['backbone'])
    if not model.get('head'):
        raise Error('model.head is missing: add a classification head')
    if issubclass(kind, VisionTransformer):
        return Size.of_config(model)
    return _size(kind.__name__, model['backbone'])


def _size(name: str, settings: dict) -> Size:
    return Size(name, to_2tuple(settings.get('img_size', ANY_SIZE)))


@dataclass(frozen=True)
class Candidate:
    """Model to measure.

    Args:
        size (Size): Model size.
        config (dict): Classifier config.
        variant (Variant): Token reduction. Defaults to none.
        kind (str): Implementation: ``TIMM``, ``MMPRETRAIN``, or ``PLAIN`` for
            this package. Defaults to ``PLAIN``.
        name (str): Name of the config file. Defaults to '', no file.
        fused (bool): Whether branches are fused by
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
        """Config file or size name, with fusion and backend."""
        fused = 'fused' if self.fused else ''
        words = self.name or self.size.name, fused, self.backend
        return ', '.join(filter(None, words))

    @property
    def method(self) -> str:
        """Name of the reducer, or of the implementation without one."""
        return self.variant.method or self.kind

    @property
    def clca(self) -> str:
        """CLCA parts: 'yes' for both, 'CLC', 'CLA' or 'no'."""
        clca = self.variant.clca
        return 'yes' if clca == 'CLCA' else clca or 'no'

    @property
    def label(self) -> str:
        """Short text with method, keep rate and CLCA parts."""
        return self.variant.name if self.kind == PLAIN else self.kind

    @property
    def reduce_at(self) -> tuple[int, ...]:
        """Indices of the reducing layers."""
        has_backbone = 'backbone' in self.config  # missing in timm's models
        return get_reduction(self.config)['reduce_at'] if has_backbone else ()

    @property
    def vit_size(self) -> Size:
        """Size for a plain ViT baseline; raises for other architectures."""
        if not self.size.embed_dims:
            raise Error(
                f'{self.name} ({self.size.name}) is not a VisionTransformer: '
                'add --baseline FILE and omit mmpretrain from --methods'
            )
        return self.size

    def cost(self) -> Cost:
        """Multiply-accumulates and tokens of the unfused model.

        timm's plain ViT is counted as mmpretrain's ViT with the same size.
        """
        if self.method == TIMM and self.size.embed_dims:
            return mmpretrain_vit(self.size).cost()
        return count_config(self.config, self.size.img_size)


def timm_vit(size: Size) -> Candidate:
    """timm's plain ViT with fused attention, the default baseline."""
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
    """mmpretrain's plain ViT of a given size."""
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
    """Apply another token reduction; ``Variant()`` removes reduction."""
    return of_config(model.name, variant.apply(model.config), model.size)


def of_config(name: str, model: dict, size: Size | None = None) -> Candidate:
    """Make a candidate from a classifier config.

    ``name`` is its name in the table; ``size`` defaults to the model's size.
    """
    size = size or size_of(model)
    if 'model_name' in model:  # a TimmClassifier
        return Candidate(size, model, kind=TIMM, name=name)
    ours = issubclass(get_class(model['backbone']), ForeignWeights)
    kind = PLAIN if ours else MMPRETRAIN
    return Candidate(size, model, Variant.from_config(model), kind, name)


def varied_candidates(
    model: Candidate,
    methods: Iterable[str],
    keep_rates: Iterable[float],
    clca: Iterable[bool],
) -> list[Candidate]:
    """Combine a model with methods, keep rates and CLCA on or off.

    ``methods`` may include ``PLAIN``, and ``MMPRETRAIN`` for mmpretrain's ViT
    with the same size; both occur only once.
    """
    makes = {MMPRETRAIN: lambda: mmpretrain_vit(model.vit_size)}
    makes[PLAIN] = lambda: varied(model, Variant())
    found = [makes[name]() for name in methods if name in makes]
    reducers = [method for method in methods if method not in makes]
    # set layers, cache and head once: this step builds the model
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
    """Add ONNX Runtime copies after each model, except timm's."""
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
    """Map each baseline to the models compared with it.

    Without ``baseline``, each model is compared with timm's plain ViT of the
    same size. ``archs`` and ``img_sizes`` add ViT sizes, ``fuse`` and ``onnx``
    add fused models and ONNX Runtime, and ``chosen`` is passed to
    :func:`varied_candidates`. Raises an Error if two models have the same
    name.
    """
    found = {baseline: list(configs)}
    if baseline is None:
        sizes = [Size.of_arch(a, side) for a in archs for side in img_sizes]
        found = {timm_vit(size): [] for size in sizes}
        for one in configs:
            found.setdefault(timm_vit(one.vit_size), []).append(one)
    for one, compared in found.items():
        start = one if baseline else mmpretrain_vit(one.size)
        compared[:0] = varied_candidates(start, **chosen)
        if fuse:
            fusible = filter(_is_fusible, [one, *compared])
            compared += [replace(model, fused=True) for model in fusible]
        _check_names([one, *compared])
        if onnx:
            compared[:] = with_onnx([one, *compared])[1:]
    return found


def _check_names(rows: list[Candidate]) -> None:
    for i, one in enumerate(rows):
        if one in rows[:i]:
            raise Error(
                f'two models have the name {one.title} {one.label}: omit one, '
                'or rename the config file'
            )
