# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .accuracy import accuracy, recalls, wilson
from .open_set import (
    auroc,
    energy,
    false_positive_rate,
    fit_threshold,
    max_softmax,
)
from .retrieval import (
    RetrievalMetric,
    average_precision,
    knn_scores,
    recall_at,
)

__all__ = [
    'RetrievalMetric',
    'accuracy',
    'auroc',
    'average_precision',
    'energy',
    'false_positive_rate',
    'fit_threshold',
    'knn_scores',
    'max_softmax',
    'recall_at',
    'recalls',
    'wilson',
]
