# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Variants of a trained model with other reduction methods and keep rates."""

from copy import deepcopy
from dataclasses import replace
from functools import lru_cache
from math import prod

import cv2
import torch
from mmengine.config import Config
from mmengine.dataset import default_collate
from mmengine.logging import MMLogger
from mmengine.model import BaseModel
from mmpretrain import get_model

from mmclca.apis import TokenReductionInferencer, best_classes
from mmclca.benchmark import Setting
from mmclca.benchmark.steps import inference_step, median_milliseconds
from mmclca.datasets.batches import make_view
from mmclca.evaluation.cost import count_config
from mmclca.models import Reducible, Variant, as_reducible, list_methods
from mmclca.registry import MODELS
from mmclca.visualization.kept_patches import KeptPatches, find_kept_patches

NONE = 'none'  # method of a model without token reduction
REDUCER = 'backbone.reducer.'
ROUNDS = 5  # timed passes
SIDE = 336  # minimum longer side of pictures, in pixels


class Variants:
    """Reduction methods and keep rates for the weights of a trained model.

    The methods are the trained one and all methods without parameters, so
    every weight in use is trained. All variants share the weights.

    Args:
        trained (TokenReductionInferencer): The model.
        most (int): Maximum number of cached variants. Defaults to 8.
    """

    def __init__(self, trained: TokenReductionInferencer, most: int = 8):
        self.trained = trained
        self.backbone = backbone = as_reducible(trained.model.backbone)
        self.own, self.rate = _reduction(backbone)
        own, rate = [self.own] if self.own else [], self.rate
        others = [name for name in list_methods() if self._fits(name, rate)]
        self.methods = [*dict.fromkeys([self.own or NONE, *others])]
        self.start = Variant(self.methods[0], rate)
        # some methods have weights for one keep rate only
        other_rate = 1.0 if rate < 0.75 else 0.5
        self.fixed = any(not self._fits(name, other_rate) for name in own)
        self.at = lru_cache(maxsize=most)(self._inferencer)
        self._plain = lru_cache(maxsize=4)(self._plain_step)

    def is_fixed(self, method: str) -> bool:
        """Whether a method allows only the keep rate of training."""
        return self.fixed and method == self.own

    def config(self, method: str, keep_rate: float) -> Config:
        """Return the config of the model with another reduction."""
        config = deepcopy(self.trained.model._config)
        method = None if method == NONE else method
        trained_with = self.own, self.own and self.rate
        if (method, method and keep_rate) != trained_with:
            has = Variant.from_config(config.model)
            has = replace(has, method=method, keep_rate=keep_rate)
            config.model = has.apply(config.model)
        return config

    def _fits(self, method: str, keep_rate: float) -> bool:
        """Whether the trained weights suffice for a method."""
        logger = MMLogger.get_current_instance()
        # hide warnings: the user did not choose this method
        before, logger.disabled = logger.disabled, True
        try:
            with torch.device('meta'):
                self._sharing(self.config(method, keep_rate))
        except (RuntimeError, ValueError):  # missing weights, few patches
            return False
        finally:
            logger.disabled = before
        return True

    def _sharing(self, config: Config) -> BaseModel:
        """Build a model with shared weights."""
        with torch.no_grad():
            model = get_model(config, pretrained=False)
        state = self.trained.model.state_dict()
        if not model.backbone.reducer.state_dict():
            own = [name for name in state if name.startswith(REDUCER)]
            state = {k: v for k, v in state.items() if k not in own}
        model.load_state_dict(state, assign=True)
        return model.eval()

    def _inferencer(
        self, method: str, keep_rate: float
    ) -> TokenReductionInferencer:
        """Build the model with a method at a keep rate; ``at`` caches it.

        Only the trained model keeps its unknown-class threshold: scores of
        different models cannot be compared.
        """
        trained, config = self.trained.model, self.config(method, keep_rate)
        if config.model == trained._config.model:
            return self.trained
        return TokenReductionInferencer(
            self._sharing(config),
            device=next(trained.parameters()).device,
            classes=self.trained.classes,
        )

    def costs(self, method: str, keep_rate: float, packed: dict, gmacs: float):
        """Compare a variant with the model without reduction on one photo.

        Return a row for each: name, GMACs and latency in ms, both timed
        alternately. ``packed`` comes from ``trained.prepare``; ``gmacs`` is
        the cost of the variant.
        """
        model = self.at(method, keep_rate).model
        data = dict(inputs=[packed['inputs']])
        images = model.data_preprocessor(data)['inputs']
        setting = Setting(device=str(images.device), batch=1)
        plain_gmacs, plain = self._plain(tuple(images.shape[2:]), setting)
        rate = '' if method == NONE else f', keep rate {keep_rate:g}'
        step = inference_step(model, images, setting)
        steps = {f'{method}{rate}': step, 'full model (all patches)': plain}
        times = median_milliseconds(steps, setting, ROUNDS, warm_up=1)
        return [
            [name, float(f'{cost:.3g}'), float(f'{times[name]:.3g}')]
            for name, cost in zip(steps, (gmacs, plain_gmacs), strict=True)
        ]

    def _plain_step(self, shape: tuple[int, int], setting: Setting):
        """Return GMACs and forward pass of the full model, random weights."""
        config = Variant().apply(self.trained.model._config.model)
        config['backbone']['img_size'] = shape
        gmacs = count_config(config).flops / 1e9
        with torch.device(setting.device):
            model = MODELS.build(config)
        return gmacs, inference_step(model, setting.images(shape), setting)


def classify(
    inferencer: TokenReductionInferencer, packed: dict, with_tokens=False
) -> dict:
    """Return the result for a photo, prepared by ``inferencer.prepare``.

    It has ``scores``, the five best scores by class name, best first.
    """
    (sample,) = inferencer.forward(default_collate([packed]), with_tokens)
    sample.set_metainfo(dict(image='leaf'))
    (result,) = inferencer.postprocess([sample], None)
    best = best_classes(result, inferencer.classes)
    return dict(result, scores={one['name']: one['score'] for one in best})


def remaining_patches(
    inferencer: TokenReductionInferencer, packed: dict
) -> KeptPatches:
    """Find the remaining patches of a photo after each stage."""
    view = make_view(inferencer.model, 'leaf', packed['inputs'])
    scale = max(1.0, SIDE / max(view.image.shape[:2]))
    cubic = dict(fx=scale, fy=scale, interpolation=cv2.INTER_CUBIC)
    view = replace(view, image=cv2.resize(view.image, None, **cubic))
    (left,) = find_kept_patches(inferencer.model, [view])
    return left


def _reduction(backbone: Reducible) -> tuple[str | None, float]:
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
