# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .grafit_model import Grafit
from .views import ViewsDataPreprocessor

__all__ = ['Grafit', 'ViewsDataPreprocessor']
