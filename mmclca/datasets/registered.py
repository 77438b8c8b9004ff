# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Import all datasets, samplers and transforms, which registers them."""

from importlib import import_module

from mmclca.datasets import MODULES

for module in dict.fromkeys(MODULES.values()):
    import_module(f'mmclca.datasets.{module}')
