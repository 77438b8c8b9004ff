# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .accuracy import ReaLAccuracy, accuracy, recalls, wilson
from .retrieval import RetrievalMetric

__all__ = ['ReaLAccuracy', 'RetrievalMetric', 'accuracy', 'recalls', 'wilson']
