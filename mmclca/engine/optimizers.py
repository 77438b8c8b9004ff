# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from contextlib import contextmanager

import torch
from mmengine.device import get_device
from mmengine.optim import OptimWrapper
from torch import nn

from mmclca.registry import OPTIM_WRAPPERS


@OPTIM_WRAPPERS.register_module()
class BF16OptimWrapper(OptimWrapper):
    """Mixed precision in bfloat16 on a CPU or a GPU.

    mmengine's ``AmpOptimWrapper`` requires a GPU. bfloat16 has the same range
    as float32, so the loss is not scaled; parameters and updates stay in
    float32. On a CPU with bfloat16 instructions (AVX-512 BF16, AMX), a
    training step with a small ViT takes about half as long as in float32; on
    other CPUs it is slower.

    Args:
        *args: See ``OptimWrapper``.
        **kwargs: See ``OptimWrapper``.
    """

    @contextmanager
    def optim_context(self, model: nn.Module):
        """Autocast context for a forward pass; see ``OptimWrapper``."""
        device = torch.device(get_device()).type
        autocast = torch.autocast(device, torch.bfloat16)
        with super().optim_context(model), autocast:
            yield
