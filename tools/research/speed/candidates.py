# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Models of a comparison and their baselines.

All models are configs of mmpretrain classifiers with random weights. timm's
models are wrapped in ``TimmClassifier``, so every model has the same
``forward`` and ``loss``.
"""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace

from mmpretrain.models.backbones import VisionTransformer
from mmpretrain.models.utils import to_2tuple

from mmclca.benchmark import Candidate
from mmclca.benchmark.candidates import FUSED, INT8, ONNX
from mmclca.benchmark.steps import ANY_SIZE
from mmclca.errors import Error
from mmclca.evaluation.cost import Cost, count_config
from mmclca.models import Variant, as_reducible, get_reduction, list_methods
from mmclca.models.backbones import ForeignWeights
from mmclca.models.config_class import get_class
from mmclca.registry import MODELS
from mmclca.utils.meta_device import on_meta_device

TIMM = 'timm'
MMPRETRAIN = 'mmpretrain'
PLAIN = 'none'
SUFFIXES = {FUSED: 'fused', ONNX: 'ONNX', INT8: 'ONNX int8'}
REDUCERS = list_methods()
PLAINS = (MMPRETRAIN, PLAIN)
KEYS = ('embed_dims', 'num_layers', 'num_heads', 'feedforward_channels')


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
    def from_arch(cls, arch: str, img_size: int) -> 'Size':
        """Size for an ``arch`` of mmpretrain's ``VisionTransformer``."""
        settings = {k: VisionTransformer.arch_zoo[arch][k] for k in KEYS}
        return cls(arch, (img_size, img_size), **settings)

    @classmethod
    def from_config(cls, model: dict) -> 'Size':
        """Size of a classifier with a ``VisionTransformer`` backbone."""
        with on_meta_device():
            backbone = MODELS.build(deepcopy(model['backbone']))
        arch = model['backbone'].get('arch', 'base')
        settings = {k: backbone.arch_settings[k] for k in KEYS}
        branches = model['backbone'].get('branches', 1)
        settings['num_layers'] *= branches
        shape = '{embed_dims} x {num_layers}'.format(**settings)
        (side,) = set(as_reducible(backbone).stride)
        return cls(
            arch if isinstance(arch, str) and branches == 1 else shape,
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


def get_size(model: dict) -> Size:
    """Size of the classifier in a config; raises if its head is missing."""
    if 'model_name' in model:  # a TimmClassifier
        size = to_2tuple(model.get('img_size', ANY_SIZE))
        return Size(model['model_name'], size)
    backbone_class = get_class(model['backbone'])
    if not model.get('head'):
        raise Error('model.head is missing: add a classification head')
    if issubclass(backbone_class, VisionTransformer):
        return Size.from_config(model)
    size = to_2tuple(model['backbone'].get('img_size', ANY_SIZE))
    return Size(backbone_class.__name__, size)


@dataclass(frozen=True, kw_only=True)
class SizedCandidate(Candidate):
    """Model of a comparison, whose config includes its variant.

    Args:
        size (Size): Model size.
        source (str): ``TIMM``, ``MMPRETRAIN``, or ``PLAIN`` for this package.
            Defaults to ``PLAIN``.
    """

    size: Size
    source: str = PLAIN

    @property
    def model(self) -> dict:
        """Classifier config with the variant."""
        return self.config

    @property
    def full_title(self) -> str:
        """Title with the runtime."""
        suffix = SUFFIXES.get(self.runtime)
        return f'{self.title}, {suffix}' if suffix else self.title

    @property
    def applied(self) -> Variant:
        """Token reduction of the model."""
        return self.variant or Variant()

    @property
    def method(self) -> str:
        """Name of the reducer, or of the source without one."""
        return self.applied.method or self.source

    @property
    def clca(self) -> str:
        """CLCA parts: 'yes' for both, 'CLC', 'CLA' or 'no'."""
        clca = self.applied.clca
        return 'yes' if clca == 'CLCA' else clca or 'no'

    @property
    def label(self) -> str:
        """Method, keep rate and CLCA parts."""
        return self.applied.name if self.source == PLAIN else self.source

    @property
    def reduce_at(self) -> tuple[int, ...]:
        """Indices of the reducing layers."""
        has_backbone = 'backbone' in self.config  # missing in timm's models
        return get_reduction(self.model)['reduce_at'] if has_backbone else ()

    @property
    def vit_size(self) -> Size:
        """Size for a plain ViT baseline; raises for other architectures."""
        if not self.size.embed_dims:
            raise Error(
                f'{self.title} ({self.size.name}) is not a VisionTransformer: '
                'add --baseline FILE and omit mmpretrain from --methods'
            )
        return self.size

    def cost(self) -> Cost:
        """Multiply-accumulates and tokens of the unfused model.

        timm's plain ViT is counted as mmpretrain's ViT with the same size.
        """
        if self.method == TIMM and self.size.embed_dims:
            return mmpretrain_vit(self.size).cost()
        return count_config(self.model, self.size.img_size)


def timm_vit(size: Size) -> SizedCandidate:
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
    return SizedCandidate(size.name, config, size=size, source=TIMM)


def mmpretrain_vit(size: Size) -> SizedCandidate:
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
    return read_candidate(size.name, config, size)


def vary(model: SizedCandidate, variant: Variant) -> SizedCandidate:
    """Apply another token reduction; ``Variant()`` removes reduction."""
    return read_candidate(model.title, variant.apply(model.config), model.size)


def read_candidate(
    title: str, model: dict, size: Size | None = None
) -> SizedCandidate:
    """Make a candidate from a classifier config.

    ``title`` is its name in the table; ``size`` defaults to the model's size.
    """
    size = size or get_size(model)
    if 'model_name' in model:  # a TimmClassifier
        return SizedCandidate(title, model, size=size, source=TIMM)
    is_plain = issubclass(get_class(model['backbone']), ForeignWeights)
    return SizedCandidate(
        title,
        model,
        Variant.from_config(model),
        size=size,
        source=PLAIN if is_plain else MMPRETRAIN,
    )


def vary_all(
    model: SizedCandidate,
    methods: Iterable[str],
    keep_rates: Iterable[float],
    clca: Iterable[bool],
) -> list[SizedCandidate]:
    """Combine a model with methods, keep rates and CLCA on or off.

    ``methods`` may include ``PLAIN``, and ``MMPRETRAIN`` for mmpretrain's ViT
    with the same size; both occur only once.
    """
    candidates = []
    if MMPRETRAIN in methods:
        candidates.append(mmpretrain_vit(model.vit_size))
    if PLAIN in methods:
        candidates.append(vary(model, Variant()))
    reducers = [method for method in methods if method not in PLAINS]
    # set layers, cache and head once: this step builds the model
    first = model.applied.method or [*reducers, None][0]
    starts = [
        vary(model, Variant(first, cache=extra, cla=extra))
        for extra in clca
        if reducers
    ]
    candidates += [
        vary(start, replace(start.applied, method=method, keep_rate=rate))
        for method in reducers
        for rate in keep_rates
        for start in starts
    ]
    return candidates


def with_onnx(models: Iterable[SizedCandidate]) -> list[SizedCandidate]:
    """Add ONNX Runtime copies after each model, except timm's."""
    return [
        replace(model, runtime=runtime)
        for model in models
        for runtime in (model.runtime, ONNX, INT8)
        if model.method != TIMM or runtime == model.runtime
    ]


def plan(
    configs: Sequence[SizedCandidate],
    baseline: SizedCandidate | None = None,
    archs: Sequence[str] = (),
    img_sizes: Sequence[int] = (),
    fuse: bool = False,
    onnx: bool = False,
    **choices,
) -> dict[SizedCandidate, list[SizedCandidate]]:
    """Map each baseline to the models compared with it.

    Without ``baseline``, each model is compared with timm's plain ViT of the
    same size. ``archs`` and ``img_sizes`` add ViT sizes, ``fuse`` and ``onnx``
    add fused models and ONNX Runtime, and ``choices`` is passed to
    :func:`vary_all`. Raises an Error if two models have the same name.
    """
    groups = {baseline: list(configs)}
    if baseline is None:
        sizes = [Size.from_arch(a, side) for a in archs for side in img_sizes]
        groups = {timm_vit(size): [] for size in sizes}
        for candidate in configs:
            plain = timm_vit(candidate.vit_size)
            groups.setdefault(plain, []).append(candidate)
    for plain, compared in groups.items():
        start = plain if baseline else mmpretrain_vit(plain.size)
        compared[:0] = vary_all(start, **choices)
        if fuse:
            compared += [
                replace(model, runtime=FUSED)
                for model in [plain, *compared]
                if model.source == PLAIN and model.is_fusible()
            ]
        _check_names([plain, *compared])
        if onnx:
            compared[:] = with_onnx([plain, *compared])[1:]
    return groups


def _check_names(rows: list[SizedCandidate]) -> None:
    """Raise if two models have equal names in the table."""
    names = [(row.full_title, row.label, row.size) for row in rows]
    for i, (title, label, _) in enumerate(names):
        if names[i] in names[:i]:
            raise Error(
                f'two models have the name {title} {label}: omit one, or '
                'rename the config file'
            )
