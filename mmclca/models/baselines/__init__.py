# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .classifiers import CLEViTClassifier, ContrastiveClassifier
from .part_selection import FFVT, TransFG
from .shuffled_view import ShuffledView
from .sim_trans import SIMTrans, SIMTransHead

__all__ = [
    'CLEViTClassifier',
    'ContrastiveClassifier',
    'FFVT',
    'SIMTrans',
    'SIMTransHead',
    'ShuffledView',
    'TransFG',
]
