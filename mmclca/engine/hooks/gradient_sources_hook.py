# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from math import isfinite

import torch
from torch import Tensor, nn

from mmclca.checkpoints.loading import inner_model
from mmclca.models import CrossLayerCache
from mmclca.models.layers.parallel import ParallelLayer
from mmclca.registry import HOOKS

from .epoch_maxima_hook import EpochMaximaHook


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

    They are of one process, of the last pass where gradients accumulate,
    before clipping, and with the scale of mixed precision where that is
    used; a pass that overflows has none.

    Args:
        linear (str): Name of the linear layer, whose input tokens are
            (B, N, C). Defaults to ``'backbone.layers.0.attn.qkv'``.

    Raises:
        ValueError: At the start of training, if the model has no such linear
            layer, or has it in parallel branches, see :class:`ParallelLayer`.
    """

    def __init__(self, linear: str = 'backbone.layers.0.attn.qkv'):
        groups = ('cls', 'others', 'clr')
        super().__init__([f'grad_max_{group}' for group in groups])
        self.linear = linear
        self.num_clr = 0

    def before_train(self, runner) -> None:
        """Hook into the layer."""
        modules = dict(inner_model(runner.model).named_modules())
        linear = _alone(modules).get(self.linear)
        if not isinstance(linear, nn.Linear):
            kind = self.linear.rpartition('.')[2]
            alike = [n for n in _alone(modules) if n.endswith(f'.{kind}')]
            raise ValueError(
                f'GradientSourcesHook(linear={self.linear!r}): the model has '
                'no linear layer of that name that is used by itself (those '
                'of parallel branches are joined in training). It has '
                f'{", ".join(alike) or "none that ends alike"}'
            )
        self.num_clr = sum(
            module.num_tokens
            for module in modules.values()
            if isinstance(module, CrossLayerCache)
        )
        self.handle = linear.register_forward_hook(self._note_pass)

    def _note_pass(self, linear, args, output: Tensor) -> None:
        if not output.requires_grad:
            return
        (inputs,) = args

        def note_gradient(grads: Tensor) -> None:
            stats = sources(inputs.detach(), grads, self.num_clr)
            self.stats = stats if all(map(isfinite, stats.values())) else None

        output.register_hook(note_gradient)


def _alone(modules: dict[str, nn.Module]) -> dict[str, nn.Module]:
    """The modules, by name, that are not within parallel branches."""
    layers = [n for n, m in modules.items() if isinstance(m, ParallelLayer)]
    within = tuple(f'{name}.' for name in layers)
    return {n: m for n, m in modules.items() if not n.startswith(within)}


def sources(inputs: Tensor, grads: Tensor, num_clr: int) -> dict[str, float]:
    """The values of the hook.

    Args:
        inputs (Tensor): Of the linear layer, (B, N, C).
        grads (Tensor): Gradients of its outputs, (B, N, O).
        num_clr (int): CLR tokens, at the end of the sequence.
    """
    first_clr = inputs.size(1) - num_clr
    tokens = dict(cls=slice(1), others=slice(1, first_clr))
    if num_clr:
        tokens['clr'] = slice(first_clr, None)
    parts = {
        name: torch.einsum(
            'bno,bnc->oc', grads[:, some].float(), inputs[:, some].float()
        )
        for name, some in tokens.items()
    }
    stats = {f'grad_max_{name}': x.abs().max() for name, x in parts.items()}
    channel = sum(parts.values()).abs().amax(0).argmax()
    stats['grad_channel'] = channel
    stats['grad_channel_input'] = inputs[..., channel].abs().max()
    return {name: value.item() for name, value in stats.items()}
