# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The texts of the page, for a reader who knows plants, not networks."""

from collections.abc import Sequence

from mmclca.visualization.painting import DROPPED, FUSED, KEPT, MERGED

from .limits import MAX_PIXELS, MEGABYTES
from .methods import Method

FIRST = 6  # classes that are named
TITLE = 'Identify a leaf, and see what the model looks at'
INTRODUCTION = (
    'Drop a photograph or a scan of a leaf. A model cuts it into small '
    'squares, discards some of them step by step, and identifies the leaf '
    'from those that are left. Pictures are sent only to the computer that '
    'serves this page, and are deleted there within two hours.'
)
ABOUT_METHODS = {
    'EViT': 'keep the squares that matter most, blend the others into one',
    'TopK': 'keep the squares that matter most, drop the others',
    'ToMe': 'merge squares that look alike, in pairs',
    'ATS': 'keep as many squares as this leaf needs',
    'KMedoids': 'keep the most typical square of each group',
    'DPCKNN': 'merge groups of squares that look alike',
    'DynamicViT': 'a small trained network decides which squares to drop',
    'SiT': 'mix all squares into fewer ones, with trained weights',
    'PatchMerger': 'mix all squares into fewer ones, with trained weights',
    'Sinkhorn': 'mix all squares into fewer ones, with trained weights',
}
LOOKS = {
    KEPT: 'kept: as photographed',
    MERGED: 'merged: one colour per group',
    FUSED: 'blended faintly into one',
    DROPPED: 'dropped',
}
MIXED = 'all squares are mixed: the brighter one is, the more it counts'
DRAWN = 'Drawn leaves to try'
METHOD = 'How squares are reduced'
KEEP_RATE = 'Keep rate'
CLASSES = 'Best guesses'
SURVIVORS = 'What is left of the leaf, step by step'
COSTS = 'Computing cost of this leaf'
WAITING = 'Drop a leaf.'
TOKENS = (
    'The model works with tokens: one for each square or group of squares '
    'that is left, and a few for the leaf as a whole.'
)
MEASURING = 'Measuring ...'
NOT_FASTER = (
    'Not faster here: in a small model, for one leaf at a time, choosing '
    'squares takes as long as it saves. Larger models and pictures get faster.'
)
GMACS = 'GMACs are billions of multiplications and additions.'


def about_model(name: str, classes: Sequence[str]) -> str:
    """One line on a model: its file and what it tells apart.

    Args:
        name (str): Name of the checkpoint; '' where it has none.
        classes (Sequence[str]): Names of its classes.
    """
    first = ', '.join(classes[:FIRST])
    more = ', ...' if len(classes) > FIRST else ''
    return (
        f'{name or "This model"} knows {len(classes)} classes: {first}{more}'
    )


def drop_here() -> str:
    """The text where a picture is dropped, a heading first."""
    return (
        f'# Drop a leaf here, or click\nJPEG, PNG, TIFF, WebP, up to '
        f'{MEGABYTES} MB and {MAX_PIXELS / 1e6:.0f} million pixels'
    )


def method_label(method: Method) -> str:
    """A method in the list of choices."""
    about = ABOUT_METHODS.get(method.name)
    label = f'{method.name}: {about}' if about else method.name
    return f'{label} (trained with it)' if method.trained else label


def about_keep_rate(method: Method) -> str:
    """One line on what the slider does."""
    steps = len(method.reduce_at)
    if method.fixed:
        return (
            'The weights of this method were trained for a keep rate of '
            f'{method.keep_rate:g} and work with no other.'
        )
    times = 'once' if steps == 1 else f'{steps} times'
    trained = f' Trained with {method.keep_rate:g}.' if method.trained else ''
    return (
        f'The share of squares kept at each step, {times} in all: 0.5 keeps '
        'every second one. A lower rate is cheaper, but the model may make '
        f'more mistakes.{trained}'
    )
