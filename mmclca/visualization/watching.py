# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Forward passes that are looked at, by a model that is left as it is."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from mmclca.models import TokenReducer, TokenReductionViT
from mmclca.models.attention import Attended
from mmclca.models.tokens import Tokens


@dataclass
class Seen:
    """What is noted of a layer; features of the tokens do not count.

    Args:
        entered (Tokens): The sequence that attention sees.
        left (Tokens): What the layer makes of it, ahead of what the cache
            puts back.
        attn (Tensor, optional): Attention, mean over heads, (B, N, N).
    """

    entered: Tokens
    left: Tokens
    attn: Tensor | None = None


class Watcher(TokenReducer):
    """Stands in for a reducer and notes the tokens of each layer.

    Args:
        reducer (TokenReducer): What it stands in for.
    """

    def __init__(self, reducer: TokenReducer):
        super().__init__()
        self.reducer = reducer
        self.layers: list[Seen] = []

    def before(self, tokens: Tokens, stage: int) -> Tokens:
        return self.reducer.before(tokens, stage)

    def key_bias(self, tokens: Tokens) -> Tensor | None:
        self.layers.append(Seen(tokens, tokens))
        return self.reducer.key_bias(tokens)

    def softmax(self, tokens: Tokens) -> Callable | None:
        return self.reducer.softmax(tokens)

    def between(
        self, tokens: Tokens, attended: Attended, stage: int
    ) -> Tokens:
        left = self.reducer.between(tokens, attended, stage)
        self.layers[-1].left = left
        return left


class AttentionWatcher(Watcher):
    """Notes the attention of each layer too, which is not fused then."""

    def softmax(self, tokens: Tokens) -> Callable:
        softmax = self.reducer.softmax(tokens) or _softmax
        seen = self.layers[-1]

        def note(logits: Tensor) -> Tensor:
            weights = softmax(logits)
            seen.attn = weights.mean(dim=1)
            return weights

        return note


def _softmax(logits: Tensor) -> Tensor:
    return logits.softmax(dim=-1)


def watched(model: nn.Module, watcher: type = Watcher) -> nn.Module:
    """A twin of a classifier whose backbone notes what it does.

    It shares the parameters; the model itself is left as it is.

    Args:
        model (nn.Module): A classifier.
        watcher (type): :class:`Watcher` or :class:`AttentionWatcher`.
            Defaults to the former.

    Returns:
        nn.Module: The twin; ``backbone.reducer.layers`` of it gets a
        :class:`Seen` a layer.

    Raises:
        ValueError: If the backbone is no :class:`TokenReductionViT`.
    """
    check_backbone(model)
    backbone = _twin(model.backbone)
    # that of CompileHook is bound to the model itself
    vars(backbone).pop('forward_tokens', None)
    backbone.with_cp = False  # a layer run anew would be noted twice
    backbone.reducer = watcher(backbone.reducer)
    twin = _twin(model)
    twin.backbone = backbone
    return twin


def check_backbone(model: nn.Module) -> None:
    """Refuse a model whose tokens cannot be followed; see :func:`watched`."""
    if not isinstance(model.backbone, TokenReductionViT):
        raise ValueError(
            f'the backbone is a {type(model.backbone).__name__}, whose tokens '
            'cannot be followed: give a model with backbone=dict(type='
            "'mmclca.TokenReductionViT', ...), which takes the weights of a "
            'VisionTransformer too'
        )


def _twin(module: nn.Module) -> nn.Module:
    twin = copy(module)
    twin._modules = dict(module._modules)  # copied as one object otherwise
    return twin


@torch.no_grad()
def grid_of(backbone: TokenReductionViT, images: Tensor) -> tuple[int, int]:
    """Height and width of the grid of patches of some images."""
    return tuple(backbone.patch_embed(images[:1])[1])
