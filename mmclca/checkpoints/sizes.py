# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Compare the size of a model with weights before it takes memory."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.nn.modules.module import (
    register_module_buffer_registration_hook,
    register_module_parameter_registration_hook,
)
from torch.overrides import TorchFunctionMode

from .error import CheckpointError


class _ReadableSteps(TorchFunctionMode):
    """Keep ``linspace`` on the CPU: constructors read its numbers."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.linspace:
            kwargs = dict(kwargs, device='cpu')
        return func(*args, **kwargs)


@contextmanager
def building_within(weights: dict[str, Tensor], name: str) -> Iterator[None]:
    """Build modules without memory, of not many more parameters than weights.

    Args:
        weights (dict[str, Tensor]): Of twice as many and some more, for a new
            head and buffers, the modules may be.
        name (str): The file that weights and settings are from.

    Raises:
        CheckpointError: If there are more, or the modules cannot be built.
    """
    sizes = [x.numel() for x in weights.values() if isinstance(x, Tensor)]
    left = [2 * sum(sizes) + 2**22, 2 * len(sizes) + 1000]

    def count(module, key, tensor):
        if tensor is not None:
            left[0] -= tensor.numel()
            left[1] -= 1
        if min(left) < 0:
            raise CheckpointError(
                f'{name} is of a larger model than its weights fill, '
                f'{sum(sizes)} numbers in {len(sizes)} tensors: give the '
                'config that it was trained with'
            )

    handles = [
        register_module_parameter_registration_hook(count),
        register_module_buffer_registration_hook(count),
    ]
    try:
        with torch.device('meta'), _ReadableSteps():
            yield
    except CheckpointError:
        raise
    except Exception as error:  # constructors raise all kinds
        raise CheckpointError(
            f'the config in {name} makes no model '
            f'({type(error).__name__}: {error}): give the config that it was '
            'trained with'
        ) from error
    finally:
        for handle in handles:
            handle.remove()
