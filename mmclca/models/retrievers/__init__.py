# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .token_reduction_retriever import TokenReductionRetriever

__all__ = ['TokenReductionRetriever']
