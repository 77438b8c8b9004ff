# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Keep rates and layers of the stages of a reducer."""

from collections.abc import Sequence
from math import prod

from mmclca.errors import Error
from mmclca.utils.messages import check_number


def check_per_stage(
    name: str, values: object, num_stages: int, entry_type: type = object
) -> None:
    """Raise unless a setting is a list with one typed entry per stage.

    Args:
        name (str): Name of the setting in the message.
        values (object): Value of the setting.
        num_stages (int): Number of stages.
        entry_type (type): Type of the entries. Defaults to object, any.
    """
    entries = values if isinstance(values, Sequence) else ()
    is_list = isinstance(values, Sequence) and len(entries) == num_stages
    if not (is_list and all(isinstance(x, entry_type) for x in entries)):
        raise Error(
            f'{name}={values!r} must be {num_stages} values, one per stage '
            '(layer with a reduction)'
        )


def space_evenly(num_stages: int, num_layers: int) -> list[int]:
    """Return evenly spaced layers, such as 3, 6 and 9 of 12."""
    stages = range(1, num_stages + 1)
    return [num_layers * stage // (num_stages + 1) for stage in stages]


def list_keep_rates(
    keep_rate: float | Sequence[float], num_stages: int
) -> tuple[float, ...]:
    """Return the keep rate of each stage; raise unless all are in (0, 1]."""
    # a text is a sequence, too
    if isinstance(keep_rate, Sequence) and not isinstance(keep_rate, str):
        check_per_stage('keep_rate', keep_rate, num_stages)
        rates = tuple(keep_rate)
    else:
        check_number(minimum=1e-6, maximum=1, keep_rate=keep_rate)
        rates = (keep_rate,) * num_stages
    for rate in rates:
        check_number(minimum=1e-6, maximum=1, keep_rate=rate)
    return rates


def multiply_keep_rates(rates: Sequence[float], stage: int) -> float:
    """Multiply keep rates up to a stage.

    Equal rates use a power, as the CLCA authors' counts depend on rounding.
    """
    rates = rates[: stage + 1]
    if len(set(rates)) == 1:
        return rates[0] ** len(rates)
    return prod(rates)
