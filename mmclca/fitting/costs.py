# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What models cost, and the most accurate one that a budget allows."""

import re
from collections.abc import Callable, Mapping, Sequence
from math import ceil

import torch

from mmclca.benchmark.setting import Setting
from mmclca.benchmark.steps import median_milliseconds, steps_of
from mmclca.evaluation.cost import count_config
from mmclca.models import Variant
from mmclca.utils.provenance import cpu_name

from .candidates import words

ROUNDS = 9
UNITS = {'gmacs': 'GMACs', 'ms': 'ms'}


def cost_of(model: dict, full: dict, device: str) -> dict:
    """Count and time a model beside the whole network, if that is another."""
    models = [model] if model == full else [model, full]
    counted = [count_config(one) for one in models]
    times = [*milliseconds(dict(enumerate(models)), device).values()]
    return dict(
        gmacs=counted[0].flops / 1e9,
        gmacs_full=counted[-1].flops / 1e9,
        params=counted[0].params,
        ms=times[0],
        ms_full=times[-1],
        machine=_machine_name(device),
    )


def milliseconds(
    models: Mapping[str, dict], device: str, rounds: int = ROUNDS
) -> dict[str, float]:
    """Median time of one image, interleaved, at batch 1, by the name."""
    setting = _setting(device)
    return median_milliseconds(steps_of(models, setting), setting, rounds)


def _setting(device: str) -> Setting:
    return Setting(device=device, threads=torch.get_num_threads(), batch=1)


def _machine_name(device: str) -> str:
    setting = _setting(device)
    if setting.on_gpu:
        return torch.cuda.get_device_name(device)
    threads = f'{setting.threads} thread{"s" * (setting.threads > 1)}'
    return f'{cpu_name()}, {threads}'


def parse_budget(text: str) -> tuple[float, str]:
    """Read a budget such as ``0.5GMACs`` or ``20ms`` (at batch 1).

    GMACs are 1e9 multiply-accumulates; times are those of this machine.
    """
    found = re.fullmatch(r'(\d+\.?\d*|\.\d+) ?([a-z]+)', text.strip().lower())
    if not found or found[2] not in UNITS or not float(found[1]):
        raise ValueError(
            f'budget {text!r}: a number above 0 with its unit, such as '
            '0.5GMACs or 20ms'
        )
    return float(found[1]), UNITS[found[2]]


def choose(
    candidates: Sequence[Variant],
    budget: str | None,
    costs: Callable[[str], list[float]],
) -> Variant:
    """The first candidate that a budget allows.

    ``costs`` gives the cost of each candidate in a unit; without a budget
    the first one, which is the most accurate, is taken.
    """
    if budget is None:
        return candidates[0]
    amount, unit = parse_budget(budget)
    measured = costs(unit)
    for candidate, cost in zip(candidates, measured, strict=True):
        if cost <= amount:
            return candidate
    least = min(measured)
    cheapest = candidates[measured.index(least)]
    # rounded up, so that it can be given as it is printed
    enough = ceil(1000 * least) / 1000
    raise ValueError(
        f'budget {amount:g}{unit}: no model is that cheap; the least is '
        f'{enough:g} {unit} ({words(cheapest)})'
    )
