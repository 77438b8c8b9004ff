# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Modules built without memory for their parameters."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.overrides import TorchFunctionMode


class _ReadableSteps(TorchFunctionMode):
    """Keep ``linspace`` on the CPU, because constructors read its values."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.linspace:
            kwargs = dict(kwargs, device='cpu')
        return func(*args, **kwargs)


@contextmanager
def on_meta_device() -> Iterator[None]:
    """Build modules on the meta device, within a context.

    MMPretrain, and timm before 1.0.20, read rates of stochastic depth from a
    tensor.
    """
    with torch.device('meta'), _ReadableSteps():
        yield
