# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from torch import nn

from .reducible import Reducible


def fuse(model: nn.Module) -> nn.Module:
    """Join, in place, what backbones compute side by side, for inference.

    Layers with n branches become plain layers of n x h heads. Outputs stay
    the same up to rounding; names of parameters do not, so that checkpoints
    of the model no longer fit. What has nothing to join stays as it is.

    Args:
        model (nn.Module): A classifier, or anything that has backbones in it.

    Returns:
        nn.Module: The model.
    """
    for module in list(model.modules()):
        if isinstance(module, Reducible):
            module.fuse()
    return model
