# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .token_reduction_classifier import TokenReductionClassifier

__all__ = ['TokenReductionClassifier']
