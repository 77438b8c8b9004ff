# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Forward passes that are recorded, of a model that is left as it is."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from mmclca.models import Reducible, TokenReducer, shallow_copy
from mmclca.models.reduction.attention import Attended
from mmclca.models.reduction.tokens import Tokens


@dataclass
class Recorded:
    """What is recorded of a layer; features of the tokens do not count.

    Args:
        entered (Tokens): The sequence that attention sees.
        left (Tokens): What the layer makes of it, before what the cache
            puts back.
        attn (Tensor, optional): Attention, mean over heads, (B, N, N).
    """

    entered: Tokens
    left: Tokens
    attn: Tensor | None = None


class Recorder(TokenReducer):
    """Wraps a reducer and records the tokens of each layer.

    Args:
        reducer (TokenReducer): The reducer.
    """

    def __init__(self, reducer: TokenReducer):
        super().__init__()
        self.reducer = reducer
        self.layers: list[Recorded] = []

    def before(self, tokens: Tokens, stage: int) -> Tokens:
        return self.reducer.before(tokens, stage)

    def key_bias(self, tokens: Tokens) -> Tensor | None:
        return self.reducer.key_bias(tokens)

    def softmax(self, tokens: Tokens) -> Callable | None:
        self.layers.append(Recorded(tokens, tokens))
        return self.reducer.softmax(tokens)

    def between(
        self, tokens: Tokens, attended: Attended, stage: int
    ) -> Tokens:
        left = self.reducer.between(tokens, attended, stage)
        self.layers[-1].left = left
        return left


class AttentionRecorder(Recorder):
    """Records the attention of each layer too, which is not fused then."""

    def softmax(self, tokens: Tokens) -> Callable:
        softmax = super().softmax(tokens) or nn.Softmax(dim=-1)
        recorded = self.layers[-1]

        def record(logits: Tensor) -> Tensor:
            weights = softmax(logits)
            recorded.attn = weights.mean(dim=1)
            return weights

        return record


def recording(model: nn.Module, recorder: type = Recorder) -> nn.Module:
    """A copy of a classifier whose backbone records what it does.

    It shares the parameters; the model itself is left as it is.

    Args:
        model (nn.Module): A classifier.
        recorder (type): :class:`Recorder` or :class:`AttentionRecorder`.
            Defaults to the former.

    Returns:
        nn.Module: The copy; ``backbone.reducer.layers`` of it gets a
        :class:`Recorded` a layer.

    Raises:
        ValueError: If the tokens of the backbone cannot be followed.
    """
    copied = shallow_copy(model)
    copied.backbone.reducer = recorder(copied.backbone.reducer)
    return copied


@torch.no_grad()
def grid_of(backbone: Reducible, images: Tensor) -> tuple[int, int]:
    """Height and width of the grid of patches of some images."""
    return tuple(backbone.embed(images[:1])[1])
