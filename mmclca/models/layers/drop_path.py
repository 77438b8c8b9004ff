# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from mmcv.cnn.bricks import DropPath
from torch import nn


def use_plain_rates(model: nn.Module) -> None:
    """Make the rates of stochastic depth plain floats, in place.

    mmpretrain's are numpy's, which break ``torch.compile(fullgraph=True)``.
    """
    for module in model.modules():
        if isinstance(module, DropPath):
            module.drop_prob = float(module.drop_prob)
