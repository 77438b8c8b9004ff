# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Iterable
from math import cos, pi

from mmengine.hooks import Hook

from mmclca.engine.training_data import count_epochs
from mmclca.errors import Error
from mmclca.models.reduction.keep_rates import list_keep_rates
from mmclca.models.reduction.reducers import TopK
from mmclca.registry import HOOKS
from mmclca.utils.messages import check_integer
from mmclca.utils.wrappers import inner_model


@HOOKS.register_module()
class KeepRateScheduleHook(Hook):
    """Lower the keep rate of EViT or Top-K from 1 to the configured rate.

    `Not All Patches are What You Need: Expediting Vision Transformers via
    Token Reorganizations`, section 3.3. The keep rate follows a cosine,
    updated in every iteration. Validation and the trained model use the final
    keep rate.

    Args:
        epochs (int): Epochs from keep rate 1 to the final one.
        start (int): Epochs at keep rate 1 before them. Defaults to 0.

    Raises:
        Error: If ``epochs`` is below 1 or ``start`` is negative; at the
            start of training, if the reducer is not EViT or Top-K.
    """

    def __init__(self, epochs: int, start: int = 0):
        check_integer(epochs=epochs)
        check_integer(0, start=start)
        self.epochs = epochs
        self.start = start
        self.reducer: TopK | None = None
        self.final: tuple[float, ...] = ()

    def before_train(self, runner) -> None:
        """Read the final keep rates from the reducer."""
        backbone = inner_model(runner.model).backbone
        reducer = dict(backbone.named_children()).get('reducer')
        if not isinstance(reducer, TopK) or reducer.num_tokens:
            raise Error(
                'KeepRateScheduleHook needs mmclca.EViT or mmclca.TopK with '
                f'keep_rate (not num_tokens), but {type(backbone).__name__} '
                f'has reducer={type(reducer).__name__}; change the reducer, '
                'or remove the hook from custom_hooks'
            )
        self.reducer = reducer
        # configured rates: an interrupted run may have stored others
        self.final = list_keep_rates(reducer.keep_rate, reducer.num_stages)

    def before_train_iter(self, runner, batch_idx, data_batch=None) -> None:
        """Set the keep rates for this iteration."""
        epoch = count_epochs(runner)
        self._set_rates(
            scheduled_rate(rate, epoch - self.start, self.epochs)
            for rate in self.final
        )

    def before_val(self, runner) -> None:
        """Set the final keep rates for validation."""
        self._set_rates(self.final)

    def after_train(self, runner) -> None:
        """Set the final keep rates."""
        self._set_rates(self.final)

    def _set_rates(self, keep_rates: Iterable[float]) -> None:
        """Set the keep rates, except in a validation without training."""
        if self.reducer is not None:
            self.reducer.keep_rates = tuple(keep_rates)


def scheduled_rate(keep_rate: float, epoch: float, epochs: int) -> float:
    """Keep rate after ``epoch`` of ``epochs`` of a cosine schedule."""
    progress = min(max(epoch / epochs, 0.0), 1.0)
    return keep_rate + (1 - keep_rate) * (1 + cos(pi * progress)) / 2
