# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from typing import Any

from mmengine.model import BaseTTAModel, is_model_wrapper


def inner_model(model: Any) -> Any:
    """Return a model without its wrappers for DDP and test augmentation.

    Its type is open, as torch declares every part of a module as a tensor or
    module.
    """
    while is_model_wrapper(model) or isinstance(model, BaseTTAModel):
        model = model.module
    return model
