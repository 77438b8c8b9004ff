# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What to bear in mind beside the figures, said plainly."""

from collections.abc import Iterator

from .folder import FitFolder
from .formats import percent, plural, some

FEW = 30  # photographs, below which any figure is rough
WIDE = 0.15  # from one end of an interval to the other
UNEVEN = 10  # times as many photographs in the largest class


def caveats(fit: FitFolder) -> list[str]:
    """What a reader should know of how sure the figures are.

    Args:
        fit (FitFolder): The folder.
    """
    said = (_few, _single, _uneven, _one_plant)
    return [line for find in said for line in find(fit)]


def _few(fit: FitFolder) -> Iterator[str]:
    probe, total = fit.facts['probe'], sum(fit.counts())
    if probe['accuracy'] is None:
        return
    width = probe['high'] - probe['low']
    if total < FEW or width > WIDE:
        yield (
            f'There are only {plural(total, "photograph")}, so the accuracy '
            f'is a rough one: anything from {percent(probe["low"])} to '
            f'{percent(probe["high"])} fits what was seen.'
        )


def _single(fit: FitFolder) -> Iterator[str]:
    pairs = zip(fit.classes, fit.counts(), strict=True)
    single = [name for name, count in pairs if count == 1]
    if single:
        yield (
            f'{plural(len(single), "class has", "classes have")} one '
            'photograph, which the model learns from and cannot be tested '
            f'with. Not measured: {some(single)}. A second photograph '
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
