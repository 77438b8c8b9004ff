# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from mmengine.model import trunc_normal_init
from torch import nn


def init_linear(module: nn.Module) -> None:
    """Initialize linear layers as vision transformers do, in place."""
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            trunc_normal_init(layer, std=0.02)
