# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The models of a comparison, and the plain ones that they are compared with.

All are configs of mmpretrain's classifiers, with random weights: timm's come
in its ``TimmClassifier``, so that every model has the same ``forward`` and
``loss``.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from mmclca.evaluation.cost import Cost, count_config
from mmclca.models import fuse, list_methods, reduction_of, with_reduction
from mmclca.models.backbones import ForeignWeights
from mmclca.models.from_config import build_on_meta, class_of

from .size import Images, Size, size_of

TIMM = 'timm'
MMPRETRAIN = 'mmpretrain'
PLAIN = 'none'
ONNX, INT8 = 'ONNX', 'ONNX int8'
METHODS = list_methods()
PLAINS = (MMPRETRAIN, PLAIN)


@dataclass(frozen=True)
class Candidate:
    """A model that is measured.

    Args:
        size (Images): Its size, a :class:`Size` of a ViT.
        method (str): Name of the reducer; ``TIMM``, ``MMPRETRAIN`` or
            ``PLAIN`` for models without one.
        config (dict): Config of the classifier.
        keep_rate (str): Its keep rate, or one per stage.
            Defaults to '', there is none.
        clca (str): What it has of CLCA: 'yes' for both, 'CLC' (the cache),
            'CLA' (the head) or 'no'. Defaults to 'no'.
        name (str): Its config file. Defaults to '', it has none.
        fused (bool): Whether what can be joined is: see
            :func:`mmclca.models.backbones.fuse`. Defaults to False.
        backend (str): ``ONNX`` or ``INT8`` in ONNX Runtime. Defaults to '',
            PyTorch.
    """

    size: Images
    method: str
    config: dict = field(compare=False, repr=False)
    keep_rate: str = ''
    clca: str = 'no'
    name: str = ''
    fused: bool = False
    backend: str = ''

    @property
    def label(self) -> str:
        """Method, keep rate and what it has of CLCA, in short."""
        extra = {'no': '', 'yes': '+ CLCA'}.get(self.clca, f'+ {self.clca}')
        return ' '.join(filter(None, (self.method, self.keep_rate, extra)))

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
        if not isinstance(self.size, Size):
            raise ValueError(
                f'{self.name} ({self.size.name}) is no VisionTransformer: '
                'there is no plain ViT of its size to compare it with, give '
                '--baseline FILE and leave mmpretrain out of --methods'
            )
        return self.size

    def cost(self) -> Cost:
        """Multiply-accumulates and tokens; those of timm's plain ViT are
        those of mmpretrain's of the same size, and those of joined branches,
        which share LayerNorms, are those of the branches."""
        if self.method == TIMM and isinstance(self.size, Size):
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
    return Candidate(size, TIMM, config)


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


def plain(model: Candidate) -> Candidate:
    """A model without reducer, cache and CLA head."""
    return of_config(model.name, with_reduction(model.config), model.size)


def reduced(
    model: Candidate, method: str, keep_rate: float, clca: bool
) -> Candidate:
    """A model with a method at layers 3, 6 and 9 of twelve, as in the CLCA
    paper.

    Args:
        model (Candidate): The model.
        method (str): Name of a registered reducer.
        keep_rate (float): Its keep rate.
        clca (bool): Whether with cache (one CLR token) and CLA head.
    """
    config = with_reduction(
        model.config, method, keep_rate, cache=clca, cla=clca
    )
    return of_config(model.name, config, model.size)


def of_config(name: str, model: dict, size: Images | None = None) -> Candidate:
    """A classifier, with what its config says of its reduction.

    Args:
        name (str): How the table calls it.
        model (dict): Config of the classifier.
        size (Images, optional): Its size. Defaults to None: it is built to
            tell.
    """
    size = size or size_of(model)
    if 'model_name' in model:  # a TimmClassifier
        return Candidate(size, TIMM, model, name=name)
    has = reduction_of(model)
    ours = issubclass(class_of(model['backbone']), ForeignWeights)
    rates = has['keep_rate'] or 1.0
    rates = rates if isinstance(rates, list | tuple) else [rates]
    parts = ['CLC'] * has['cache'] + ['CLA'] * has['cla']
    return Candidate(
        size,
        has['method'] or (PLAIN if ours else MMPRETRAIN),
        model,
        '/'.join(f'{rate:g}' for rate in rates) if has['method'] else '',
        'yes' if len(parts) == 2 else ''.join(parts) or 'no',
        name,
    )


def candidates_of(
    model: Candidate,
    methods: Iterable[str],
    keep_rates: Iterable[float],
    clca: Iterable[bool],
) -> list[Candidate]:
    """A model with some methods, plain ones once.

    Args:
        model (Candidate): The model. ``MMPRETRAIN`` is a ViT of its size.
        methods (Iterable[str]): Of ``METHODS``, ``MMPRETRAIN`` and ``PLAIN``.
        keep_rates (Iterable[float]): Keep rates of the reducers.
        clca (Iterable[bool]): Without CLCA (False), with it (True), or both.
    """
    makes = {MMPRETRAIN: lambda: mmpretrain_vit(model.vit_size)}
    makes[PLAIN] = lambda: plain(model)
    found = [makes[name]() for name in methods if name in makes]
    reducers = [method for method in methods if method not in makes]
    with_clca = {extra: _start(model, reducers, extra) for extra in clca}
    found += [
        reduced(start, method, rate, extra)
        for method in reducers
        for rate in keep_rates
        for extra, start in with_clca.items()
    ]
    return found


def _start(model: Candidate, reducers: Sequence[str], clca: bool) -> Candidate:
    """The model with its layers, cache and head set, for all rates and
    reducers: these ask the built model, which takes a while."""
    if not reducers:
        return model
    method = reduction_of(model.config)['method'] or reducers[0]
    config = with_reduction(model.config, method, cache=clca, cla=clca)
    return replace(model, config=config)


def fused(models: Iterable[Candidate]) -> list[Candidate]:
    """Those models that have something to join, with it joined."""
    return [
        replace(model, name=f'{model.name}, fused', fused=True)
        for model in models
        if _is_fusible(model)
    ]


def with_onnx(models: Iterable[Candidate]) -> list[Candidate]:
    """Models, each but timm's followed by itself in ONNX Runtime."""
    return [
        replace(model, name=_name(model, backend), backend=backend)
        for model in models
        for backend in ('', ONNX, INT8)
        if model.method != TIMM or not backend
    ]


def _name(model: Candidate, backend: str) -> str:
    name = model.name or model.size.name
    return f'{name}, {backend}' if backend else model.name


def _is_fusible(model: Candidate) -> bool:
    if model.method in (TIMM, MMPRETRAIN):
        return False
    backbone = build_on_meta(model.config['backbone'])
    names = backbone.state_dict().keys()
    return fuse(backbone).state_dict().keys() != names
