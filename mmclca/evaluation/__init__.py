# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .accuracy import accuracy, recalls, wilson
from .real_accuracy import ReaLAccuracy
from .retrieval import RetrievalMetric

__all__ = ['ReaLAccuracy', 'RetrievalMetric', 'accuracy', 'recalls', 'wilson']
