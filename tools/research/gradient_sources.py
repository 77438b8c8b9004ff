# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Gradient contributions per token type in a linear layer."""

from functools import partial

import torch

from mmclca.engine.hooks import EpochMaximaHook
from mmclca.registry import HOOKS
from mmclca.utils.wrappers import inner_model


@HOOKS.register_module()
class GradientSourcesHook(EpochMaximaHook):
    """Log the gradient contributions per token type in a linear layer.

    A weight gradient is a sum over tokens: output gradient times input.
    Values per iteration:

    - ``grad_max_cls``, ``grad_max_clr``, ``grad_max_others``: the largest
      magnitude in the sum over CLS, over the CLR tokens (last in the
      sequence), and over all other tokens;
    - ``grad_channel``: the input channel with the largest total gradient;
    - ``grad_channel_input``: the largest input magnitude in this channel.

    The values are for one process, before clipping, and include the loss
    scale in mixed precision.

    Args:
        linear (str): Name of a linear layer with input tokens (B, N, C).
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
    """Return the logged values for inputs (B, N, C) and output gradients
    (B, N, O)."""
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
