# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A trained model with other methods and keep rates than in training."""

from copy import deepcopy
from dataclasses import dataclass, replace
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
from mmclca.apis.output import prediction_cells
from mmclca.benchmark import Setting
from mmclca.benchmark.steps import inference_step, median_milliseconds
from mmclca.datasets.batches import view_of_input
from mmclca.evaluation.cost import count_config
from mmclca.models import Reducible, Variant, as_reducible, list_methods
from mmclca.registry import MODELS
from mmclca.visualization.survivors import Survivors, survivors

NONE = 'none'  # of a model that keeps all patches
REDUCER = 'backbone.reducer.'
ROUNDS = 5  # timed passes
SIDE = 336  # pixels of the longer side of pictures, for a crisp look


@dataclass
class Answer:
    """The prediction for a leaf.

    Args:
        cells (list): Of its row in a table of predictions.
        scores (dict[str, float]): Those of the best classes, by their names.
        survivors (Survivors): What each stage leaves of it.
        gmacs (float): 1e9 multiply-accumulates spent on it.
    """

    cells: list
    scores: dict[str, float]
    survivors: Survivors
    gmacs: float


class Variants:
    """Offer the methods and keep rates that the weights of a model allow.

    The methods are the one it was trained with, and all that have no
    parameters of their own, so that every weight they use is a trained one.
    All variants share the weights; the last few are kept.

    Args:
        trained (TokenReductionInferencer): The model.
        most (int): Variants to keep. Defaults to 8.

    Raises:
        ValueError: If the tokens of its backbone cannot be reduced, or there
            is no CLS among them.
    """

    def __init__(self, trained: TokenReductionInferencer, most: int = 8):
        self.trained = trained
        self.backbone = backbone = as_reducible(trained.model.backbone)
        if not backbone.has_cls:
            raise ValueError(
                'the page needs a model with a CLS token: '
                f'{backbone.why_no_cls}'
            )
        self.own, self.rate = _reduction(backbone)
        own, rate = [self.own] if self.own else [], self.rate
        others = [name for name in list_methods() if self._fits(name, rate)]
        self.methods = [*dict.fromkeys([self.own or NONE, *others])]
        self.start = Variant(self.methods[0], rate)
        # whether the weights of its own method are for its keep rate alone
        other_rate = 1.0 if rate < 0.75 else 0.5
        self.fixed = any(not self._fits(name, other_rate) for name in own)
        self.at = lru_cache(maxsize=most)(self._inferencer)
        self._plain = lru_cache(maxsize=4)(self._plain_step)

    def is_fixed(self, method: str) -> bool:
        """Tell whether a method goes with its keep rate of training alone."""
        return self.fixed and method == self.own

    def config(self, method: str, keep_rate: float) -> Config:
        """Write the config of the model with a method; the rest stays."""
        config = deepcopy(self.trained.model._config)
        method = None if method == NONE else method
        trained_with = self.own, self.own and self.rate
        if (method, method and keep_rate) != trained_with:
            has = Variant.of(config.model)
            has = replace(has, method=method, keep_rate=keep_rate)
            config.model = has.apply(config.model)
        return config

    def _fits(self, method: str, keep_rate: float) -> bool:
        """Tell whether the trained weights are all that a method needs."""
        logger = MMLogger.get_current_instance()
        # no warnings of a method that nobody chose
        before, logger.disabled = logger.disabled, True
        try:
            with torch.device('meta'):
                self._sharing(self.config(method, keep_rate))
        except (RuntimeError, ValueError):  # other weights, too few patches
            return False
        finally:
            logger.disabled = before
        return True

    def _sharing(self, config: Config) -> BaseModel:
        """Build a model that shares the weights of the trained one."""
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
        """Build the model with a method at a keep rate.

        Only the trained one has a threshold: scores compare with no other's.
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
        """Compare the cost of a leaf with that of the plain model.

        Of an image as ``trained.prepare`` gives it, on which the model spends
        some GMACs: name, GMACs and milliseconds (timed interleaved) of the
        model, and of the full model (all patches).
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
        """Count the plain model and make a pass; weights are random."""
        config = Variant().apply(self.trained.model._config.model)
        config['backbone']['img_size'] = shape
        gmacs = count_config(config).flops / 1e9
        with torch.device(setting.device):
            model = MODELS.build(config)
        return gmacs, inference_step(model, setting.images(shape), setting)


def answer(
    inferencer: TokenReductionInferencer, packed: dict, topk: int = 5
) -> Answer:
    """Name a leaf, and find what is left of it on the way.

    Args:
        inferencer (TokenReductionInferencer): The model.
        packed (dict): The image as ``inferencer.prepare`` gives it.
        topk (int): Classes to name. Defaults to 5.
    """
    (sample,) = inferencer.forward(default_collate([packed]), True)
    sample.set_metainfo(dict(image='leaf'))
    (result,) = inferencer.postprocess([sample], None)
    view = view_of_input(inferencer.model, 'leaf', packed['inputs'])
    scale = max(1.0, SIDE / max(view.image.shape[:2]))
    cubic = dict(fx=scale, fy=scale, interpolation=cv2.INTER_CUBIC)
    view = replace(view, image=cv2.resize(view.image, None, **cubic))
    (left,) = survivors(inferencer.model, [view])
    best = best_classes(result, inferencer.classes, topk)
    scores = {one['name']: one['score'] for one in best}
    return Answer(prediction_cells(result), scores, left, result['gmacs'])


def _reduction(backbone: Reducible) -> tuple[str | None, float]:
    """Method and keep rate of training, one number for all stages.

    Without a method None, and the keep rate to start with.
    """
    if not backbone.reduces:
        return None, 0.5
    reducer = backbone.reducer
    name, rates = type(reducer).__name__, reducer.keep_rates
    num_tokens = vars(reducer).get('num_tokens')
    if num_tokens is not None:
        rates = [num_tokens[-1] / reducer.num_patches] + [1] * len(rates[1:])
    if len(set(rates)) == 1:
        return name, float(rates[0])
    return name, round(prod(rates) ** (1 / len(rates)), 2)
