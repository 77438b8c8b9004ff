# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Record a forward pass: tokens and attention per layer, patches per stage.

Recording works on a copy; the model itself does not change.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from mmpretrain.models.backbones import VisionTransformer
from torch import Tensor, nn

from mmclca.errors import Error

from .backbones import Reducible, TokenReductionViT
from .reduction.attention import Attended
from .reduction.tokens import Tokens
from .reduction.trace import Appended


def as_reducible(backbone: nn.Module) -> Reducible:
    """Return the backbone, or wrap mmpretrain's ViT without reduction.

    Args:
        backbone (nn.Module): Any backbone.

    Returns:
        Reducible: A backbone with the same parameters.

    Raises:
        Error: If the tokens of the backbone cannot be recorded.
    """
    if isinstance(backbone, Reducible):
        return backbone
    if type(backbone) is VisionTransformer:
        return TokenReductionViT.from_vit(backbone)
    raise Error(
        f'the tokens of a {type(backbone).__name__} cannot be recorded; use '
        'VisionTransformer or mmclca.TokenReductionViT'
    )


def shallow_copy(model: Any) -> Any:
    """Copy a classifier; both share all parameters.

    The backbone of the copy is a :class:`Reducible`. Its methods and modules
    can be replaced without an effect on the original model.

    Args:
        model (nn.Module): A classifier.

    Raises:
        Error: See :func:`as_reducible`.
    """
    copied = _copy(model)
    if copied.backbone is not copied:  # else backbone and classifier in one
        copied.backbone = _copy(as_reducible(model.backbone))
    backbone = copied.backbone
    for compiled in ('forward', 'forward_tokens'):  # bound to the original
        vars(backbone).pop(compiled, None)
    backbone.with_cp = False  # recomputation would record a layer twice
    return copied


def _copy(module: nn.Module) -> Any:
    """Copy a module alone: parameters and submodules are shared."""
    copied = copy(module)
    copied._modules = dict(module._modules)  # shared by ``copy``
    return copied


@dataclass
class Recorded:
    """Record of a layer.

    Args:
        entered (Tokens): Tokens before the attention.
        left (Tokens): Tokens after the reduction, without those restored by
            the cache. Their features are not those of the layer output.
        attn (Tensor, optional): Set by :class:`AttentionRecorder`.
    """

    entered: Tokens
    left: Tokens
    attn: Tensor | None = None


class Recorder:
    """Record the tokens of each layer; called by the backbone per layer.

    ``summary`` maps the attention (B, H, N, N) and the tokens before it to
    the stored tensor. None: the attention is not computed.
    """

    summary = None

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
        if len(left.trace) == len(entered.trace):
            left = entered  # without a reduction, free the output features
        record = Recorded(entered, left)
        if self.summary is not None:
            weights = attended.weights(attended.q, softmax)
            record.attn = self.summary(weights, entered)
        self.layers.append(record)


class AttentionRecorder(Recorder):
    """Record the attention of each layer, too."""

    @staticmethod
    def summary(weights: Tensor, tokens: Tokens) -> Tensor:
        """Average over heads, (B, N, N)."""
        return weights.mean(dim=1)


def recording_copy(model: Any, recorder: type = Recorder) -> Any:
    """Return a shallow copy whose ``backbone.recorder`` records each layer."""
    copied = shallow_copy(model)
    copied.backbone.recorder = recorder()
    return copied


def layer_outputs(
    model: Any, read: Callable[[Tensor, Tokens], Tensor]
) -> Callable[[Tensor], list[Tensor]]:
    """Return a function from images (B, 3, H, W) to features of each layer.

    ``read`` maps a layer output (B, N, C) and its tokens to the features.
    """
    backbone, outputs = recording_copy(model).backbone, []
    layers, feed = backbone.recorder.layers, backbone.ffn_block

    def run_ffn(layer, x):
        x = feed(layer, x)
        outputs.append(read(x, layers[-1].left))
        return x

    def run(images: Tensor) -> list[Tensor]:
        outputs.clear()
        layers.clear()
        backbone.forward_tokens(images)
        return [*outputs]

    backbone.ffn_block = run_ffn
    return run


@torch.no_grad()
def grid_of(backbone: Reducible, images: Tensor) -> tuple[int, int]:
    """Return height and width of the patch grid for images (B, 3, H, W)."""
    height, width = backbone.embed(images[:1])[1]
    return height, width


def stage_weights(tokens: Tokens) -> list[Tensor]:
    """Return the patch weights (B, N, P) of each reduction's output tokens.

    Each stage includes the earlier stages; see :func:`.trace.patch_weights`.
    """
    return [tokens_at.patch_weights for tokens_at, _ in _stages(tokens)]


def _stages(tokens: Tokens) -> list[tuple[Tokens, list]]:
    """Return tokens with the trace up to each reduction, and later records.

    The features are those of ``tokens``, not of the stage.
    """
    return [
        (tokens.replace(trace=tokens.trace[:step]), tokens.trace[step:])
        for step, record in enumerate(tokens.trace, start=1)
        if not isinstance(record, Appended)
    ]


def patch_weight_maps(tokens: Tokens, hw: tuple[int, int]) -> list[Tensor]:
    """Map the largest share of each patch in one token, per reduction.

    Args:
        tokens (Tokens): Final tokens of a forward pass.
        hw (tuple[int, int]): Height and width of the patch grid.

    Returns:
        list[Tensor]: One map (B, h, w) per reduction: 1 for a kept patch
        (slightly less in DPC-KNN), the largest weight in a mixed token for
        a fused or merged patch, 0 for a dropped patch.
    """
    return [w.amax(dim=1).unflatten(1, hw) for w in stage_weights(tokens)]


def assigned(weights: Tensor) -> Tensor:
    """Return the token with the largest weight per patch, (B, N, P) to (B, P).

    The first token wins a tie; dropped patches get -1.
    """
    # argmax does not define which maximum it returns
    largest = weights.amax(dim=1, keepdim=True)
    token = (weights == largest).to(torch.uint8).argmax(dim=1)
    return token.masked_fill(largest[:, 0] == 0, -1)


def share_out(values: Tensor, weights: Tensor) -> Tensor:
    """Distribute token values (B, N) to patches (B, P).

    Each token splits its value in proportion to its patch weights (B, N, P).
    """
    shares = F.normalize(weights, p=1, dim=-1)
    return (shares * values.unsqueeze(-1)).sum(dim=1)


def cached_by_stage(tokens: Tokens) -> list[list[tuple[int, int]]]:
    """Count the cached tokens per reduction and image.

    Each pair contains the cached tokens without a patch after the reduction,
    CLR tokens included, and the tokens that the cache restores right after it.
    The list is empty without a cache.
    """
    if not tokens.with_cache:
        return []
    return [_count_cached(left, after) for left, after in _stages(tokens)]


def _count_cached(tokens: Tokens, after: list) -> list[tuple[int, int]]:
    # restored before the next operation
    put_back = sum(r.num_tokens for r in after[:1] if isinstance(r, Appended))
    patches = tokens.patch_weights.sum(dim=-1)
    num_tokens = tokens.num_prefix + tokens.num_patches
    start = patches.new_zeros(len(patches), num_tokens, 1)
    cached = _from_cache(tokens.trace, start)
    left = ((cached > 0) & (patches == 0)).sum(dim=1).tolist()
    return [(number, put_back) for number in left]


def _from_cache(trace: list, rows: Tensor) -> Tensor:
    """Return the cached share of each token, (B, N).

    ``rows`` are zeros for prefix and patches, (B, num_prefix + P, 1).
    """
    for record in trace:
        before = rows.size(1)
        rows = record.apply(rows)
        if isinstance(record, Appended) and record.cached:
            new = (0, 0, 0, record.num_tokens)
            rows = F.pad(rows[:, :before], new, value=1.0)
    return rows.squeeze(-1)
