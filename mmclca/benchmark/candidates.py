# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Models whose speed is measured."""

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property

from mmclca.models import Variant, fuse
from mmclca.registry import MODELS
from mmclca.utils.meta_device import on_meta_device

PYTORCH, FUSED = 'pytorch', 'fused'
ONNX, INT8 = 'onnx', 'onnx-int8'
RUNTIMES = (PYTORCH, FUSED, ONNX, INT8)
NONE = 'none'  # method name for the model without reduction


@dataclass(frozen=True)
class Candidate:
    """Model to measure, with random weights.

    Args:
        title (str): Title in tables, such as the name of the config file.
        config (dict): Classifier config.
        variant (Variant, optional): Token reduction. Defaults to None, as in
            the config.
        runtime (str): ``PYTORCH``; ``FUSED`` for PyTorch with
            branches fused by :func:`mmclca.models.backbones.fuse`; ``ONNX``
            or ``INT8`` in ONNX Runtime. Defaults to ``PYTORCH``.
    """

    title: str
    config: dict = field(compare=False, repr=False)
    variant: Variant | None = None
    runtime: str = PYTORCH

    @cached_property
    def model(self) -> dict:
        """Classifier config with the variant.

        Raises:
            Error: See :meth:`Variant.apply`.
        """
        if self.variant is None:
            return self.config
        return self.variant.apply(self.config)

    @property
    def reduction(self) -> str:
        """Name of the variant, or of that in the config."""
        if self.variant is not None:
            return self.variant.name
        if 'backbone' not in self.config:  # a model of timm
            return Variant().name
        return Variant.from_config(self.config).name

    def is_fusible(self) -> bool:
        """Whether fusion changes the backbone."""
        if 'backbone' not in self.model:
            return False
        with on_meta_device():
            backbone = MODELS.build(deepcopy(self.model['backbone']))
        names = backbone.state_dict().keys()
        return fuse(backbone).state_dict().keys() != names


def combine_methods(
    methods: Iterable[str],
    keep_rates: Iterable[float],
    clca: Iterable[bool] = (False,),
) -> list[Variant]:
    """Combine methods with keep rates, and CLCA on or off.

    Args:
        methods (Iterable[str]): Registered reducers, or ``NONE`` for the
            plain model, which comes last, once.
        keep_rates (Iterable[float]): Keep rates of each method.
        clca (Iterable[bool]): Whether to use the cache and the CLA head.
            Defaults to (False,).
    """
    names = dict.fromkeys(methods)
    variants = [
        Variant(method, rate, cache=with_clca, cla=with_clca)
        for method in names
        for rate in dict.fromkeys(keep_rates)
        for with_clca in clca
        if method != NONE
    ]
    return [*variants, Variant()] if NONE in names else variants


def list_candidates(
    configs: dict[str, dict],
    variants: Iterable[Variant] = (),
    runtimes: Iterable[str] = (PYTORCH,),
) -> list[Candidate]:
    """Combine configs with variants and runtimes.

    Args:
        configs (dict[str, dict]): Classifier configs by title.
        variants (Iterable[Variant]): Further variants of each config.
            Defaults to (), the configs only.
        runtimes (Iterable[str]): Runtimes. Models without parallel branches
            or affine maps are left out of ``FUSED``. Defaults to PyTorch.

    Returns:
        list[Candidate]: The candidates, the first config first.
    """
    models = [
        Candidate(title, config, variant)
        for title, config in configs.items()
        for variant in (None, *variants)
    ]
    return [
        replace(model, runtime=runtime)
        for model in models
        for runtime in dict.fromkeys(runtimes)
        if runtime != FUSED or model.is_fusible()
    ]
