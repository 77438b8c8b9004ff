# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .classifiers import Linear, Neighbours, fit_linear
from .folds import OutOfFold, out_of_fold
from .learning_curve import learning_curve

__all__ = [
    'Linear',
    'Neighbours',
    'OutOfFold',
    'fit_linear',
    'learning_curve',
    'out_of_fold',
]
