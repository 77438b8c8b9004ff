# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .classifiers import fit_linear
from .feature_cache import FeatureCache
from .folds import OutOfFold, out_of_fold
from .learning_curve import learning_curve
from .probe import Probe
from .solvers import Linear

__all__ = [
    'FeatureCache',
    'Linear',
    'OutOfFold',
    'Probe',
    'fit_linear',
    'learning_curve',
    'out_of_fold',
]
