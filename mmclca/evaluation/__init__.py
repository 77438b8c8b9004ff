# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import mmclca.registry  # noqa: F401, quiet, so before mmpretrain

from .accuracy import (
    ReaLAccuracy,
    accuracy,
    estimate_accuracy_interval,
    recalls,
    wilson,
)
from .retrieval import RetrievalMetric

__all__ = [
    'ReaLAccuracy',
    'RetrievalMetric',
    'accuracy',
    'estimate_accuracy_interval',
    'recalls',
    'wilson',
]
