# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Peak tensor memory of a call, counted without a GPU."""

from collections.abc import Callable, Iterable
from weakref import finalize

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class _Live(TorchDispatchMode):
    """Counts the bytes of live operator outputs."""

    def __init__(self, known):
        super().__init__()
        self.known = {tensor.untyped_storage()._cdata for tensor in known}
        self.now = self.peak = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            if isinstance(tensor, Tensor):
                self._note(tensor.untyped_storage())
        return out

    def _note(self, storage):
        if storage._cdata not in self.known:
            self.known.add(storage._cdata)
            self.now += storage.nbytes()
            self.peak = max(self.peak, self.now)
            finalize(storage, self._freed, storage._cdata, storage.nbytes())

    def _freed(self, place, nbytes):
        self.known.remove(place)
        self.now -= nbytes


@torch.no_grad()
def peak_bytes(model: nn.Module, x: Tensor) -> int:
    """Peak bytes of a forward pass, without parameters and input."""
    inputs = [x, *model.parameters(), *model.buffers()]
    return peak_bytes_of_call(lambda: model(x), inputs)


def peak_bytes_of_call(function: Callable, inputs: Iterable[Tensor]) -> int:
    """Peak bytes of a call, without its inputs."""
    live = _Live(inputs)
    with live:
        function()
    return live.peak
