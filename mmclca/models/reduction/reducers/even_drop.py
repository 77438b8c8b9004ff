# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch

from mmclca.registry import MODELS

from ..tokens import Tokens
from .counted import CountedReducer


@MODELS.register_module()
class EvenDrop(CountedReducer):
    """Keep evenly spaced tokens, whatever the image shows.

    A baseline without learned or measured importance: of M tokens after the
    prefix, cached ones included, a stage keeps those at positions ``i * M //
    K`` for i < K, in their order. Training and evaluation are the same.

    Args:
        keep_rate (float | Sequence[float], optional): See
            :class:`CountedReducer`. Defaults to None, 1 for all stages.
        num_tokens (Sequence[int], optional): See :class:`CountedReducer`.
            Defaults to None.
        backbone (BackboneShape): See :class:`CountedReducer`.
        init_cfg (dict, optional): See :class:`CountedReducer`.
    """

    summary = 'keep evenly spaced patches, drop the rest'
    keeps_places = True

    def before_layer(self, tokens: Tokens, stage: int) -> Tokens:
        batch_size, available, _ = tokens.after_prefix.shape
        num_removed = self.count_removed(tokens, stage)
        if not num_removed:
            return tokens.unchanged()
        num_kept = available - num_removed
        index = torch.arange(num_kept, device=tokens.features.device)
        return tokens.keep(
            (index * available // num_kept).expand(batch_size, -1)
        )
