# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .classifiers import fit_linear
from .curves import CurvePoint, forecast, learning_curve
from .data import LabeledFeatures
from .folds import OutOfFold, out_of_fold
from .probe import Probe
from .settings import ClassifierSettings, FoldSettings, ProbeSetting
from .solvers import LinearClassifier

__all__ = [
    'ClassifierSettings',
    'CurvePoint',
    'FoldSettings',
    'LabeledFeatures',
    'LinearClassifier',
    'OutOfFold',
    'Probe',
    'ProbeSetting',
    'fit_linear',
    'forecast',
    'learning_curve',
    'out_of_fold',
]
