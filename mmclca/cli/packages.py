# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Packages that take seconds to import; ``--help`` does not need them."""

from mmclca.utils.lazy import lazy

apis = lazy('mmclca.apis')
benchmark = lazy('mmclca.benchmark')
checkpoints = lazy('mmclca.checkpoints')
configs = lazy('mmclca.configs')
datasets = lazy('mmclca.datasets')
deployment = lazy('mmclca.deployment')
engine = lazy('mmclca.engine')
evaluation = lazy('mmclca.evaluation')
fitting = lazy('mmclca.fitting')
model_index = lazy('mmclca.model_index')
models = lazy('mmclca.models')
page = lazy('mmclca.page')
sweep = lazy('mmclca.sweep')
visualization = lazy('mmclca.visualization')
mmcv = lazy('mmcv')
mmengine = lazy('mmengine')
mmpretrain = lazy('mmpretrain')
np = lazy('numpy')
pd = lazy('pandas')
rich = lazy('rich')
torch = lazy('torch')
