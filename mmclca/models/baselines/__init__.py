# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .classifiers import CLEViTClassifier, ContrastiveClassifier
from .ffvt import FFVT
from .shuffled_view import ShuffledView
from .sim_trans import SIMTrans, SIMTransHead
from .transfg import TransFG

__all__ = [
    'CLEViTClassifier',
    'ContrastiveClassifier',
    'FFVT',
    'SIMTrans',
    'SIMTransHead',
    'ShuffledView',
    'TransFG',
]
