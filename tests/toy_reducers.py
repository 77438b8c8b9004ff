# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Unregistered reducers that use one hook each, and sizes for reducers."""

import torch
from torch import nn

from mmclca.models import TokenReducer
from mmclca.models.reduction.keep_rates import space_evenly
from mmclca.models.reduction.reducers.base import BackboneShape


def shape(num_stages=3, **sizes):
    """Return the sizes of a backbone with evenly spaced stages."""
    return BackboneShape(reduce_at=space_evenly(num_stages, 12), **sizes)


class Halve(TokenReducer):
    """Keep every other token before a layer, from the first."""

    def before_layer(self, tokens, stage):
        index = torch.arange(
            0, tokens.features.size(1), 2, device=tokens.features.device
        )
        return tokens.gather(index.expand(tokens.features.size(0), -1))


class Mask(TokenReducer):
    """Hide the second patch from attention in every layer."""

    def key_bias(self, tokens):
        bias = tokens.features.new_zeros(1, 1, 1, tokens.features.size(1))
        bias[..., 2] = -torch.inf
        return bias


class MaskBySoftmax(TokenReducer):
    """:class:`Mask` with a custom softmax."""

    def softmax(self, tokens):
        def softmax(logits):
            logits = logits.clone()
            logits[..., 2] = -torch.inf
            return logits.softmax(-1)

        return softmax


class MaskFromFirstStage(MaskBySoftmax):
    """:class:`MaskBySoftmax` in the layers after the first stage."""

    def after_attention(self, tokens, attended, stage):
        return tokens.replace(weight=tokens.weights)

    def softmax(self, tokens):
        return None if tokens.weight is None else super().softmax(tokens)


class Scored(TokenReducer):
    """Reducer with parameters per stage, shared ones, and a loss."""

    def __init__(self, **options):
        super().__init__(**options)
        dims = self.embed_dims
        self.scores = nn.ModuleList(
            nn.Sequential(nn.Linear(dims, dims), nn.GELU(), nn.Linear(dims, 1))
            for _ in range(self.num_stages)
        )
        self.shared = nn.Sequential(*[nn.Linear(dims, dims) for _ in range(6)])
        self.scale = nn.Parameter(torch.ones(1))

    def before_layer(self, tokens, stage):
        score = self.scores[stage](self.shared(tokens.features)).sigmoid()
        return tokens.with_features(tokens.features * (1 + self.scale * score))

    def loss(self, tokens):
        return dict(loss_ratio=2 * tokens.features.square().mean())
