# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .inferencer import load_inferencer, load_trained

__all__ = ['load_inferencer', 'load_trained']
