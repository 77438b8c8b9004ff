# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache

import torch

from mmclca.apis import TokenReductionInferencer
from mmclca.benchmark import Setting
from mmclca.benchmark.interleaved import median_milliseconds
from mmclca.benchmark.steps import inference_step
from mmclca.evaluation.cost import count_config
from mmclca.models import with_reduction
from mmclca.registry import MODELS

ROUNDS = 5


@dataclass
class Speed:
    """What one leaf costs a model.

    Args:
        gmacs (float): 1e9 multiply-accumulates.
        milliseconds (float): Median time of a forward pass, one image.
    """

    gmacs: float
    milliseconds: float


class Speeds:
    """Compares a model with the same one without reduction.

    Args:
        trained (TokenReductionInferencer): The model.
    """

    def __init__(self, trained: TokenReductionInferencer):
        device = next(trained.model.parameters()).device
        self.plain = with_reduction(trained.model._config.model)
        self.setting = Setting(device=str(device), batch=1)
        self._plain = lru_cache(maxsize=4)(self._build)

    def compare(
        self, inferencer: TokenReductionInferencer, packed: dict, gmacs: float
    ) -> tuple[Speed, Speed]:
        """Cost of a leaf in a model and in the plain one, timed interleaved.

        Args:
            inferencer (TokenReductionInferencer): The model.
            packed (dict): The image as ``inferencer.prepare`` gives it.
            gmacs (float): What the model spends on it.
        """
        model = inferencer.model
        data = dict(inputs=[packed['inputs']])
        images = model.data_preprocessor(data)['inputs']
        plain_gmacs, plain = self._plain(tuple(images.shape[2:]))
        step = inference_step(model, images, self.setting)
        steps = dict(model=step, plain=plain)
        times = median_milliseconds(steps, self.setting, ROUNDS, warm_up=1)
        return Speed(gmacs, times['model']), Speed(plain_gmacs, times['plain'])

    def _build(self, shape: tuple[int, int]):
        """The plain model's GMACs and a pass of it; weights are random."""
        config = deepcopy(self.plain)
        config['backbone']['img_size'] = shape
        gmacs = count_config(config).flops / 1e9
        with torch.device(self.setting.device):
            model = MODELS.build(config)
        images = self.setting.images(shape)
        return gmacs, inference_step(model, images, self.setting)
