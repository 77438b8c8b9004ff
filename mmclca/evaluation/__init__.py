# Copyright (c) mmclca contributors. Licensed under Apache-2.0.

from .accuracy import (
    ReaLAccuracy,
    accuracy,
    clopper_pearson,
    estimate_accuracy_interval,
    recalls,
    wilson,
)
from .retrieval import RetrievalMetric

__all__ = [
    'ReaLAccuracy',
    'RetrievalMetric',
    'accuracy',
    'clopper_pearson',
    'estimate_accuracy_interval',
    'recalls',
    'wilson',
]
