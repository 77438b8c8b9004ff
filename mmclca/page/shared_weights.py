# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from copy import deepcopy
from functools import lru_cache

import torch
from mmengine.config import Config
from mmengine.model import BaseModel
from mmpretrain import get_model

from mmclca.apis import TokenReductionInferencer

from .methods import Method, methods_of

REDUCER = 'backbone.reducer.'


class Variants:
    """A trained model with other methods and keep rates than in training.

    All of them share the weights of the model; the last few are kept.

    Args:
        trained (TokenReductionInferencer): The model.
        most (int): Variants to keep. Defaults to 8.

    Raises:
        ValueError: If the tokens of its backbone cannot be reduced.
    """

    def __init__(self, trained: TokenReductionInferencer, most: int = 8):
        self.trained = trained
        self.methods = methods_of(trained.model)
        self._kept = lru_cache(maxsize=most)(self._inferencer)

    @property
    def start(self) -> Method:
        """The method of the checkpoint; the first one where it has none."""
        return next(iter(self.methods.values()))

    def at(self, name: str, keep_rate: float) -> TokenReductionInferencer:
        """The model with a method at a keep rate.

        Args:
            name (str): Of ``methods``.
            keep_rate (float): Its keep rate, above 0 and at most 1.

        Raises:
            ValueError: If there is no such method, or its weights are for
                another keep rate.
        """
        if name not in self.methods:
            raise ValueError(
                f'{name!r} is not one of {", ".join(self.methods)}'
            )
        method = self.methods[name]
        if method.fixed and keep_rate != method.keep_rate:
            raise ValueError(
                f'{name} was trained for keep rate {method.keep_rate} and '
                f'works with no other; {keep_rate} came'
            )
        return self._kept(name, keep_rate)

    def _inferencer(self, name: str, rate: float) -> TokenReductionInferencer:
        method = self.methods[name]
        trained = self.trained.model
        config = deepcopy(trained._config)
        config.model = method.config(config.model, rate)
        found = TokenReductionInferencer(
            _rebuilt(trained, config),
            device=next(trained.parameters()).device,
            classes=self.trained.classes,
        )
        if config.model == trained._config.model:  # scores compare with no
            found.threshold = self.trained.threshold  # other model's
        return found


def _rebuilt(trained: BaseModel, config: Config) -> BaseModel:
    """A model of another config that shares the weights of a trained one."""
    with torch.no_grad():
        model = get_model(config, pretrained=False)
    state = trained.state_dict()
    if not any(name.startswith(REDUCER) for name in model.state_dict()):
        state = {k: v for k, v in state.items() if not k.startswith(REDUCER)}
    model.load_state_dict(state, assign=True)
    return model.eval()
