# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .accuracy import accuracy, recalls, wilson
from .open_set import (
    auroc,
    energy,
    false_positive_rate,
    fit_threshold,
    max_softmax,
)
from .retrieval import average_precision, knn_scores, recall_at
from .retrieval_metric import RetrievalMetric

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
