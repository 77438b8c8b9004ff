# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Look into a forward pass: tokens and attention by layer, patches by stage.

The model that is looked into is left as it is.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from mmpretrain.models.backbones import VisionTransformer
from torch import Tensor, nn

from .backbones import Reducible, TokenReductionViT
from .reduction.attention import Attended
from .reduction.tokens import Tokens
from .reduction.trace import Appended


def as_reducible(backbone: nn.Module) -> Reducible:
    """Return the backbone, or mmpretrain's ViT as one without reduction.

    Args:
        backbone (nn.Module): Any backbone.

    Returns:
        Reducible: It shares all parameters.

    Raises:
        ValueError: If its tokens cannot be recorded.
    """
    if isinstance(backbone, Reducible):
        return backbone
    if type(backbone) is VisionTransformer:
        return TokenReductionViT.from_vit(backbone)
    raise ValueError(
        f'the tokens of a {type(backbone).__name__} cannot be recorded; use '
        'VisionTransformer or mmclca.TokenReductionViT'
    )


def shallow_copy(model: nn.Module) -> nn.Module:
    """Return a classifier that shares parameters with another one.

    Methods and modules of its backbone, which is a :class:`Reducible`, can
    be replaced; the model itself is left as it is.

    Args:
        model (nn.Module): A classifier.

    Raises:
        ValueError: See :func:`as_reducible`.
    """
    backbone = _copy(as_reducible(model.backbone))
    for compiled in ('forward', 'forward_tokens'):  # bound to the model
        vars(backbone).pop(compiled, None)
    backbone.with_cp = False  # a layer run anew would be seen twice
    copied = _copy(model)
    copied.backbone = backbone
    return copied


def _copy(module: nn.Module) -> nn.Module:
    copied = copy(module)
    copied._modules = dict(module._modules)  # copied as one object otherwise
    return copied


@dataclass
class Recorded:
    """Hold the tokens that a layer's attention reads and those it leaves.

    ``left`` is before what the cache puts back; ``attn`` what an
    :class:`AttentionRecorder` makes of the attention. Features of the tokens
    do not count.
    """

    entered: Tokens
    left: Tokens
    attn: Tensor | None = None


class Recorder:
    """Record the tokens of each layer; a backbone calls it in each."""

    def __init__(self):
        self.layers: list[Recorded] = []

    def observe(
        self,
        entered: Tokens,
        attended: Attended,
        softmax: Callable | None,
        left: Tokens,
    ) -> None:
        """Append the record of a layer."""
        # unless the layer reduces, free its features after the attention
        reduced = len(left.trace) > len(entered.trace)
        self.layers.append(Recorded(entered, left if reduced else entered))


class AttentionRecorder(Recorder):
    """Record the attention of each layer too.

    ``summary`` is what is kept of the attention (B, H, N, N) and the tokens
    that it reads.
    """

    @staticmethod
    def summary(weights: Tensor, tokens: Tokens) -> Tensor:
        """Average over heads, (B, N, N)."""
        return weights.mean(dim=1)

    def observe(
        self,
        entered: Tokens,
        attended: Attended,
        softmax: Callable | None,
        left: Tokens,
    ) -> None:
        """Append the record of a layer, with its attention."""
        super().observe(entered, attended, softmax, left)
        weights = attended.weights(attended.q, softmax)
        self.layers[-1].attn = self.summary(weights, entered)


def recording_copy(model: nn.Module, recorder: type = Recorder) -> nn.Module:
    """Copy a classifier, parameters shared, with a backbone that records.

    ``backbone.recorder.layers`` of the copy gets a :class:`Recorded` a layer.

    Raises:
        ValueError: If the tokens of the backbone cannot be followed.
    """
    copied = shallow_copy(model)
    copied.backbone.recorder = recorder()
    return copied


def layer_outputs(
    model: nn.Module, read: Callable[[Tensor, Tokens], Tensor]
) -> Callable[[Tensor], list[Tensor]]:
    """Return what reads the output of each layer, of images (B, 3, H, W).

    Args:
        model (nn.Module): A classifier.
        read (Callable): What to take of an output (B, N, C) and of its tokens
            as the reducer left them.
    """
    backbone, found = recording_copy(model).backbone, []
    layers, feed = backbone.recorder.layers, backbone.ffn_block

    def note(layer, x):
        x = feed(layer, x)
        found.append(read(x, layers[-1].left))
        return x

    def look(images: Tensor) -> list[Tensor]:
        found.clear()
        layers.clear()
        backbone.forward_tokens(images)
        return [*found]

    backbone.ffn_block = note
    return look


@torch.no_grad()
def grid_of(backbone: Reducible, images: Tensor) -> tuple[int, int]:
    """Find the height and width of the grid of patches of some images."""
    return tuple(backbone.embed(images[:1])[1])


def stage_weights(tokens: Tokens) -> list[Tensor]:
    """Find what the tokens that each reduction leaves stand for.

    Args:
        tokens (Tokens): The final ones of a forward pass.

    Returns:
        list[Tensor]: Weights (B, N, P) a reduction, of the patches of the
        image in each token; see :func:`.trace.patch_weights`.
        Stages before it are in them.
    """
    return [tokens_at.patch_weights for tokens_at, _ in _stages(tokens)]


def _stages(tokens: Tokens) -> list[tuple[Tokens, list]]:
    """Give the sequence after each reduction, and the records that follow."""
    return [
        (replace(tokens, trace=tokens.trace[:step]), tokens.trace[step:])
        for step, record in enumerate(tokens.trace, start=1)
        if not isinstance(record, Appended)
    ]


def survivor_maps(tokens: Tokens, hw: tuple[int, int]) -> list[Tensor]:
    """Map how much of each patch one token still carries, by reduction.

    Args:
        tokens (Tokens): The final ones of a forward pass.
        hw (tuple[int, int]): Height and width of the grid of patches.

    Returns:
        list[Tensor]: A map (B, h, w) a stage: 1 where the patch has a token
        of its own (a little less in DPC-KNN), the largest weight in a mixed
        token where it is fused or merged, 0 where it is dropped.
    """
    return [w.amax(dim=1).unflatten(1, hw) for w in stage_weights(tokens)]


def assigned(weights: Tensor) -> Tensor:
    """Find the token of largest weight a patch, (B, N, P) to (B, P)."""
    # argmax takes any of equal ones
    most = weights.amax(dim=1, keepdim=True)
    token = (weights == most).to(torch.uint8).argmax(dim=1)
    return token.masked_fill(most[:, 0] == 0, -1)


def share_out(values: Tensor, weights: Tensor) -> Tensor:
    """Hand values of tokens (B, N) to their patches, (B, P).

    In proportion to the weights (B, N, P) of the patches in each token.
    """
    shares = F.normalize(weights, p=1, dim=-1)
    return (shares * values.unsqueeze(-1)).sum(dim=1)


def cached_by_stage(tokens: Tokens) -> list[list[tuple[int, int]]]:
    """Count the cached tokens of each reduction, for each image.

    Those that the reduction leaves and that stand for no patch, CLR tokens
    included; and those that the cache puts back right after it. Empty where
    no cache takes part.
    """
    if not tokens.with_cache:
        return []
    return [_cached(*stage) for stage in _stages(tokens)]


def _cached(tokens: Tokens, after: list) -> list[tuple[int, int]]:
    # cached tokens that come before anything else is done
    put_back = sum(r.num_tokens for r in after[:1] if isinstance(r, Appended))
    patches = tokens.patch_weights.sum(dim=-1)
    num_tokens = tokens.num_prefix + tokens.num_patches
    start = patches.new_zeros(len(patches), num_tokens, 1)
    cached = _from_cache(tokens.trace, start)
    left = ((cached > 0) & (patches == 0)).sum(dim=1).tolist()
    return [(number, put_back) for number in left]


def _from_cache(trace: list, rows: Tensor) -> Tensor:
    """Follow how much of each token came from the cache, (B, N).

    ``rows`` are zeros for prefix and patches, (B, num_prefix + P, 1).
    """
    for record in trace:
        before = rows.size(1)
        rows = record.apply(rows)
        if isinstance(record, Appended) and record.cached:
            new = (0, 0, 0, record.num_tokens)
            rows = F.pad(rows[:, :before], new, value=1.0)
    return rows.squeeze(-1)
