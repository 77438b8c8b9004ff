# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The models that fit chooses from, and the best that a budget allows."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil

from mmclca.models import Variant

from .architecture import VIT

# the most accurate first: DeiT-Tiny, ten draws of three images a class of
# leaf40_white, the other 322 are the test. A smaller image without reduction
# is as good there, and worse on images whose classes differ in details.
ACCURACY = {
    Variant('EViT', 0.5, side, out_type='average'): accuracy
    for side, accuracy in (
        (224, 0.965),
        (208, 0.963),
        (192, 0.952),
        (160, 0.942),
        (144, 0.916),
    )
}
SIDES = tuple(variant.img_size for variant in ACCURACY)


def candidates_of(backbone: dict) -> tuple[Variant, ...]:
    """The models to choose from, the most accurate or largest one first.

    Args:
        backbone (dict): Settings of what the weights are of, see
            :func:`mmclca.fitting.architecture.backbone_of`. Those with an
            ``img_size`` take no other one.
    """
    if backbone['type'] == VIT:
        return tuple(ACCURACY)
    sides = (backbone['img_size'],) if 'img_size' in backbone else SIDES
    return tuple(Variant(None, 1.0, side) for side in sides)


def words(variant: Variant) -> str:
    """Describe a candidate: its reduction, or that all of it is read."""
    kind = 'the whole network'
    if variant.method is not None:
        kind = f'{variant.method} keep rate {variant.keep_rate}'
    return f'{kind}, {variant.img_size} px'


UNITS = {'gmacs': 'GMACs', 'ms': 'ms'}


@dataclass(frozen=True)
class Budget:
    """What an image may cost.

    Args:
        amount (float): At most.
        unit (str): 'GMACs' (1e9 multiply-accumulates) or 'ms' (at batch 1,
            on this machine).
    """

    amount: float
    unit: str

    def __str__(self) -> str:
        return f'{self.amount:g}{self.unit}'


def parse_budget(text: str) -> Budget:
    """Read a budget such as ``0.5GMACs`` or ``20ms``.

    Raises:
        ValueError: If it is none.
    """
    found = re.fullmatch(r'(\d+\.?\d*|\.\d+) ?([a-z]+)', text.strip().lower())
    if not found or found[2] not in UNITS or not float(found[1]):
        raise ValueError(
            f'budget {text!r}: a number above 0 with its unit, such as '
            '0.5GMACs or 20ms'
        )
    return Budget(float(found[1]), UNITS[found[2]])


def choose(
    candidates: Sequence[Variant],
    budget: Budget | None,
    costs: Callable[[str], list[float]],
) -> Variant:
    """The first candidate that a budget allows.

    Args:
        candidates (Sequence[Variant]): The most accurate one first.
        budget (Budget, optional): What an image may cost; None: the first
            candidate.
        costs (Callable): Gives the cost of each candidate in a unit.

    Raises:
        ValueError: If none is that cheap; names the cheapest.
    """
    if budget is None:
        return candidates[0]
    measured = costs(budget.unit)
    pairs = zip(candidates, measured, strict=True)
    for candidate, cost in pairs:
        if cost <= budget.amount:
            return candidate
    least = min(measured)
    cheapest = candidates[measured.index(least)]
    # rounded up, so that it can be given as it is printed
    enough = ceil(1000 * least) / 1000
    raise ValueError(
        f'budget {budget}: no model is that cheap; the least is {enough:g} '
        f'{budget.unit} ({words(cheapest)})'
    )
