# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What to bear in mind beside the figures, said plainly."""

from collections.abc import Iterator

from ..words import UNEVEN
from .folder import FitFolder
from .formats import percent, plural

FEW = 30  # photographs, below which any accuracy is rough
WIDE = 0.15  # from one end of an interval to the other


def caveats(fit: FitFolder) -> list[str]:
    """What a reader should know of how sure the figures are.

    Args:
        fit (FitFolder): The folder.
    """
    said = (_few, _single, _uneven, _one_plant)
    return [line for find in said for line in find(fit)]


def _few(fit: FitFolder) -> Iterator[str]:
    probe, tested = fit.facts['probe'], len(fit.tested)
    if probe['low'] is None:
        return
    if tested < FEW or probe['high'] - probe['low'] > WIDE:
        yield (
            f'Only {plural(tested, "photograph")} could be tested, so the '
            f'accuracy is a rough one: anything from {percent(probe["low"])} '
            f'to {percent(probe["high"])} fits what was seen.'
        )


def _single(fit: FitFolder) -> Iterator[str]:
    per_class = (fit.facts['probe']['per_class'] or {}).values()
    single = sum(found['recall'] is None for found in per_class)
    if single and fit.tested:
        one = (
            'one photograph or one plant' if fit.grouped else 'one photograph'
        )
        yield (
            f'{plural(single, "class has", "classes have")} only {one}. The '
            'model learns from it, but nothing is left to test with: the '
            'accuracy says nothing about such a class. A second photograph '
            'changes that.'
        )


def _uneven(fit: FitFolder) -> Iterator[str]:
    counts = [count for count in fit.counts() if count]
    if max(counts) < UNEVEN * min(counts):
        return
    mean = fit.facts['probe']['macro_recall']
    yield (
        f'Classes differ in size: the largest has {max(counts)} photographs, '
        f'the smallest {min(counts)}. The accuracy mostly tells of the large '
        'ones. '
        + (f'The mean over classes is {percent(mean)}. ' if mean else '')
        + 'With --class-weights balanced every class counts alike.'
    )


def _one_plant(fit: FitFolder) -> Iterator[str]:
    if not fit.grouped:
        yield (
            'Each photograph was taken to be of a plant of its own. If some '
            'show the same plant or leaf, the accuracy for new plants is '
            'lower than it says here: fit again with --groups, which keeps '
            'the photographs of one plant together.'
        )
