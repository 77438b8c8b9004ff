# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .checkpoint import trained_by_demo
from .limits import read_leaf
from .methods import Method, methods_of
from .prediction import Prediction, Stage, predict
from .shared_weights import Variants
from .speed import Speed, Speeds

__all__ = [
    'Method',
    'Prediction',
    'Speed',
    'Speeds',
    'Stage',
    'Variants',
    'methods_of',
    'predict',
    'read_leaf',
    'trained_by_demo',
]
