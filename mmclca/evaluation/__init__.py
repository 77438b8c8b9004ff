# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from mmclca.models.retrievers import knn_scores

from .intervals import wilson
from .open_set import (
    auroc,
    energy,
    false_positive_rate,
    fit_threshold,
    max_softmax,
)
from .retrieval import average_precision, recall_at
from .retrieval_metric import RetrievalMetric

__all__ = [
    'RetrievalMetric',
    'auroc',
    'average_precision',
    'energy',
    'false_positive_rate',
    'fit_threshold',
    'knn_scores',
    'max_softmax',
    'recall_at',
    'wilson',
]
