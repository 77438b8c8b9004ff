# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Variants of a trained model with other reduction methods and keep rates."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

import torch
from mmengine.config import Config
from mmengine.logging import MMLogger
from mmengine.model import BaseModel
from mmpretrain import get_model

from mmclca.apis import TokenReductionInferencer
from mmclca.benchmark import Setting
from mmclca.benchmark.steps import inference_step, median_milliseconds
from mmclca.errors import Error
from mmclca.evaluation.cost import count_config
from mmclca.languages import text
from mmclca.models import Reducible, Variant, as_reducible, list_methods
from mmclca.registry import MODELS
from mmclca.utils.meta_device import on_meta_device

from .prediction import Prediction

NONE = 'none'  # method of a model without token reduction
REDUCER = 'backbone.reducer.'  # prefix of its parameters
ROUNDS = 5  # timed passes


@dataclass(frozen=True)
class MeasuredCost:
    """Cost of a model for one photo.

    Args:
        title (str): The model.
        gmacs (float): Billion multiply-accumulates.
        milliseconds (float): Median latency.
    """

    title: str
    gmacs: float
    milliseconds: float


class Variants:
    """Reduction methods and keep rates for the weights of a trained model.

    The methods are the trained one and all methods without parameters, so
    every weight in use is trained. All variants share the weights.

    Args:
        trained (TokenReductionInferencer): The model.
        max_cached (int): Maximum number of cached variants. Defaults to 8.

    Attributes:
        trained_method (str | None): Method of the training.
        trained_rate (float): Keep rate of the training.
        methods (list[str]): Names of all methods; ``NONE`` for a model
            trained without one.
        start (Variant): The first method, at the keep rate of the training.
    """

    def __init__(self, trained: TokenReductionInferencer, max_cached: int = 8):
        self.trained = trained
        self.backbone = backbone = as_reducible(trained.model.backbone)
        self.trained_method, rate = read_reduction(backbone)
        self.trained_rate = rate
        self.start = Variant(self.trained_method, rate)
        fitting = [
            name for name in list_methods() if self._fits(Variant(name, rate))
        ]
        names = [self.trained_method or NONE, *fitting]
        self.methods = [*dict.fromkeys(names)]
        # some methods have weights for one keep rate only
        other = replace(self.start, keep_rate=1.0 if rate < 0.75 else 0.5)
        self._has_fixed_rate = bool(other.method) and not self._fits(other)
        self.at = lru_cache(maxsize=max_cached)(self._build)
        self._time_full = lru_cache(maxsize=4)(self._build_full)

    def select(self, method: str, keep_rate: float) -> Variant:
        """Return the variant of a method in ``methods`` at a keep rate."""
        return Variant(None if method == NONE else method, keep_rate)

    def has_fixed_rate(self, method: str) -> bool:
        """Whether a method allows only the keep rate of training."""
        return self._has_fixed_rate and method == self.trained_method

    def config(self, variant: Variant) -> Config:
        """Return the config of the model with another reduction."""
        config = deepcopy(self.trained.model._config)
        is_trained = variant == self.start
        if not (is_trained or variant.method is self.trained_method is None):
            present = Variant.from_config(config.model)
            changed = replace(
                present, method=variant.method, keep_rate=variant.keep_rate
            )
            config.model = changed.apply(config.model)
        return config

    def _fits(self, variant: Variant) -> bool:
        """Whether the trained weights suffice for a variant."""
        logger = MMLogger.get_current_instance()
        # hide warnings: the user did not choose this method
        before, logger.disabled = logger.disabled, True
        try:
            with on_meta_device():
                self._share_weights(self.config(variant))
        except (RuntimeError, Error):  # missing weights, few patches
            return False
        finally:
            logger.disabled = before
        return True

    def _share_weights(self, config: Config) -> BaseModel:
        """Build a model with shared weights."""
        with torch.no_grad():
            model = get_model(config, pretrained=False)
        state = self.trained.model.state_dict()
        if not model.backbone.reducer.state_dict():
            state = {
                name: weight
                for name, weight in state.items()
                if not name.startswith(REDUCER)
            }
        model.load_state_dict(state, assign=True)
        return model.eval()

    def _build(self, variant: Variant) -> TokenReductionInferencer:
        """Build the model of a variant; ``at`` caches it.

        Only the trained model keeps its unknown-class threshold: scores of
        different models cannot be compared.
        """
        trained, config = self.trained.model, self.config(variant)
        if config.model == trained._config.model:
            return self.trained
        return TokenReductionInferencer(
            self._share_weights(config),
            device=next(trained.parameters()).device,
            classes=self.trained.classes,
        )

    def compare_costs(
        self, variant: Variant, packed: dict, prediction: Prediction
    ) -> list[MeasuredCost]:
        """Compare a variant with the model without reduction on one photo.

        Both are timed alternately. ``packed`` comes from ``trained.prepare``,
        ``prediction`` from the variant.
        """
        model = self.at(variant).model
        images = model.data_preprocessor(dict(inputs=[packed['inputs']]))
        images = images['inputs']
        setting = Setting(device=str(images.device), batch=1)
        full_gmacs, run_full = self._time_full(
            tuple(images.shape[2:]), setting
        )
        name = text('page.explore.none')
        if variant.method:
            name = text(
                'page.explore.reduced',
                method=variant.method,
                rate=f'{variant.keep_rate:g}',
            )
        full = text('page.explore.full')
        times = median_milliseconds(
            {name: inference_step(model, images, setting), full: run_full},
            setting,
            ROUNDS,
            warm_up=1,
        )
        return [
            MeasuredCost(name, prediction.gmacs, times[name]),
            MeasuredCost(full, full_gmacs, times[full]),
        ]

    def _build_full(
        self, shape: tuple[int, int], setting: Setting
    ) -> tuple[float, Callable[[], object]]:
        """Return GMACs and forward pass of the full model, random weights."""
        config = Variant().apply(self.trained.model._config.model)
        config['backbone']['img_size'] = shape
        gmacs = count_config(config).flops / 1e9
        with torch.device(setting.device):
            model = MODELS.build(config)
        return gmacs, inference_step(model, setting.images(shape), setting)


def read_reduction(backbone: Reducible) -> tuple[str | None, float]:
    """Return reduction method and keep rate (geometric mean over stages).

    Without token reduction, return None and the slider's initial rate.
    """
    if not backbone.reduces:
        return None, 0.5
    reducer = backbone.reducer
    name, rates = type(reducer).__name__, reducer.keep_rates
    num_tokens = reducer.num_tokens
    if num_tokens is not None:
        rates = [num_tokens[-1] / reducer.num_patches] + [1] * len(rates[1:])
    if len(set(rates)) == 1:
        return name, float(rates[0])
    return name, round(prod(rates) ** (1 / len(rates)), 2)
