# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .accuracy import accuracy, recalls, wilson
from .retrieval import RetrievalMetric

__all__ = ['RetrievalMetric', 'accuracy', 'recalls', 'wilson']
