# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Compare the size of a model with weights before it takes memory."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.nn.modules import module as registration
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
    """Build modules on the meta device and limit their size by the weights.

    Args:
        weights (dict[str, Tensor]): Modules may have about twice as many
            parameters, to allow for a new head and buffers.
        name (str): The file with the weights and settings.

    Raises:
        CheckpointError: If the modules are larger or cannot be built.
    """
    sizes = [x.numel() for x in weights.values() if isinstance(x, Tensor)]
    left = [2 * sum(sizes) + 2**22, 2 * len(sizes) + 1000]

    def count(module, key, tensor):
        if tensor is not None:
            left[0] -= tensor.numel()
            left[1] -= 1
        if min(left) < 0:
            raise CheckpointError(
                f'the config in {name} defines a larger model than its '
                f'weights fill ({sum(sizes)} numbers in {len(sizes)} '
                'tensors); use the config of its training'
            )

    handles = [
        registration.register_module_parameter_registration_hook(count),
        registration.register_module_buffer_registration_hook(count),
    ]
    try:
        with torch.device('meta'), _ReadableSteps():
            yield
    except CheckpointError:
        raise
    except Exception as error:  # constructors raise all kinds
        raise CheckpointError(
            f'cannot build the model of the config in {name} '
            f'({type(error).__name__}: {error}); use the config of its '
            'training'
        ) from error
    finally:
        for handle in handles:
            handle.remove()
