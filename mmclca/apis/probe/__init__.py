# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .classifiers import LinearClassifier, fit_linear
from .folds import CurvePoint, OutOfFold, forecast, learning_curve, out_of_fold
from .probe import Probe

__all__ = [
    'CurvePoint',
    'LinearClassifier',
    'OutOfFold',
    'Probe',
    'fit_linear',
    'forecast',
    'learning_curve',
    'out_of_fold',
]
