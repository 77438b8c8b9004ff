# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""How tables and figures write the words of a cell."""

from collections.abc import Iterable

CLCA = dict(base='base', cla='+CLA', clc='+CLC', clca='CLCA')
DATASETS = dict(
    cotton80='Cotton80',
    soylocal='SoyLocal',
    soygene='SoyGene',
    soyageing='SoyAgeing',
    soyglobal='SoyGlobal',
)
INERT = ('EViT', 'TopK', 'ToMe')  # at keep rate 1 they reduce nothing


def dataset_label(name: str) -> str:
    """A data set as papers write it, or its own word."""
    return DATASETS.get(name, name)


def setting_label(dataset: str, *words: str) -> str:
    """What a figure is of: a data set, then other words; '' is left out."""
    return ', '.join(filter(None, (dataset_label(dataset), *words)))


def percent(share: float) -> str:
    """A share as a number of per cent, without zeros at its end."""
    return f'{100 * share:.4g}'


def plus_minus(mean: float, std: float, digits: int = 1) -> str:
    """A mean and its standard deviation, which one value does not have."""
    spread = '' if std != std else f' ± {std:.{digits}f}'  # NaN
    return f'{mean:.{digits}f}{spread}'


def over_seeds(
    means: Iterable[float], stds: Iterable[float], seeds: Iterable[int]
) -> list[str]:
    """Means over seeds, standard deviations, and how many seeds there are."""
    numbers = zip(means, stds, seeds, strict=True)
    return [f'{plus_minus(mean, std)} ({n})' for mean, std, n in numbers]


def seeds_label(counts: Iterable[int]) -> str:
    """How many seeds: '3 seeds', '2-3 seeds'."""
    low, high = min(counts), max(counts)
    words = f'{low}' if low == high else f'{low}-{high}'
    return f'{words} seed{"s" * (high > 1)}'
