# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from mmengine.model import BaseTTAModel, is_model_wrapper
from torch import nn


def inner_model(model: nn.Module) -> nn.Module:
    """Return a model without its wrappers for DDP and test augmentation."""
    while is_model_wrapper(model) or isinstance(model, BaseTTAModel):
        model = model.module
    return model
