# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Which tokens the gradients of a linear layer come from."""

from functools import partial

import torch

from mmclca.engine.hooks import EpochMaximaHook
from mmclca.registry import HOOKS
from mmclca.utils.wrappers import inner_model


@HOOKS.register_module()
class GradientSourcesHook(EpochMaximaHook):
    """Logs which tokens the gradients of a linear layer come from.

    The gradient of a weight is a sum over tokens: of the gradient of a
    token's output times its input. The values, of each iteration:

    - ``grad_max_cls``, ``grad_max_clr``, ``grad_max_others``: the largest
      magnitude in the sum over CLS, over the CLR tokens (the last of the
      sequence), and over all other tokens;
    - ``grad_channel``: the input channel in which the whole sum is largest;
    - ``grad_channel_input``: the largest magnitude of an input there.

    They are of one process, before clipping, and with the scale of mixed
    precision where that is used.

    Args:
        linear (str): Name of the linear layer, whose input tokens are
            (B, N, C).
    """

    def __init__(self, linear: str):
        super().__init__(['grad_max_cls', 'grad_max_others', 'grad_max_clr'])
        self.linear = linear

    def before_train(self, runner):
        """Hook into the layer."""
        model = inner_model(runner.model)
        cache = model.backbone.cache
        note = partial(self._note, cache.num_tokens if cache else 0)
        linear = model.get_submodule(self.linear)
        self.handle = linear.register_forward_hook(note)

    def _note(self, num_clr, linear, inputs, output):
        def note(grads):
            self.stats = sources(inputs[0].detach(), grads, num_clr)

        if output.requires_grad:
            output.register_hook(note)


def sources(inputs, grads, num_clr):
    """Return the values of the hook, of inputs (B, N, C) and gradients (B, N,
    O)."""
    first_clr = inputs.size(1) - num_clr
    parts = dict(cls=slice(1), others=slice(1, first_clr))
    if num_clr:
        parts['clr'] = slice(first_clr, None)
    sums = {
        name: torch.einsum('bno,bnc->oc', grads[:, part], inputs[:, part])
        for name, part in parts.items()
    }
    channel = sum(sums.values()).abs().amax(0).argmax()
    stats = {f'grad_max_{name}': x.abs().max() for name, x in sums.items()}
    stats['grad_channel'] = channel
    stats['grad_channel_input'] = inputs[..., channel].abs().max()
    return {name: value.item() for name, value in stats.items()}
