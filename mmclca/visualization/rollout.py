# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from itertools import takewhile

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mmclca.errors import Error
from mmclca.models import Reducible, recording
from mmclca.models.reduction.tokens import Tokens
from mmclca.models.reduction.trace import Appended


@torch.no_grad()
def rollout(model: nn.Module, images: Tensor) -> Tensor:
    """Compute attention rollout from CLS to the patches, with reduced tokens.

    `Quantifying Attention Flow in Transformers`, section 3: with A_l the
    attention of layer l, averaged over heads, the rows R of the tokens over
    the input tokens become (A_l R + R) / 2, where the second term is the
    residual. A reduction transforms R like the tokens: rows are gathered,
    summed with the weights in a fused or merged token, and normalized to a sum
    of 1. Cached tokens get the rows that the cache computes from R: the mean
    for an average, the CLR row for a CLR token. Without reduction and cache,
    this is the rollout of the paper. The model keeps its mode; call ``eval()``
    first.

    Args:
        model (nn.Module): A classifier with a :class:`Reducible` backbone or a
            plain ViT.
        images (Tensor): Preprocessed images, (B, 3, H, W).

    Returns:
        Tensor: Row of CLS after the last layer over the patches, (B, h, w).
        The remainder to a sum of 1 is on CLS, registers and CLR tokens.

    Raises:
        Error: If the backbone does not support recording, or lacks CLS.
    """
    copied = recording.recording_copy(model, recording.AttentionRecorder)
    backbone: Reducible = copied.backbone
    recorder: recording.Recorder = backbone.recorder
    cache: nn.Module | None = backbone.cache
    if not backbone.ranks_by_cls:
        raise Error(f'rollout needs CLS: {backbone.why_no_cls}')
    backbone.forward_tokens(images)
    rows = rollout_rows(recorder.layers, cache)
    hw = recording.grid_of(backbone, images)
    first = recorder.layers[0].entered.num_prefix
    return rows[:, 0, first : first + hw[0] * hw[1]].unflatten(1, hw)


def rollout_rows(
    layers: list[recording.Recorded], cache: nn.Module | None
) -> Tensor:
    """Compute the rows (B, N, I) from final tokens to I input tokens.

    Input tokens are CLS, patches, registers and CLR tokens after the
    embedding. ``layers`` are recorded with their attention; see
    :func:`rollout`.
    """
    flow = _unit_rows(layers[0])
    cached = []
    for i, layer in enumerate(layers):
        flow = _apply_trace(flow, layer.entered)
        attn: Tensor = layer.attn  # set by AttentionRecorder
        mixed = (attn.to(flow.features) @ flow.features + flow.features) / 2
        flow = _apply_trace(flow.with_features(mixed), layer.left)
        if cache is not None:
            flow = cache(i, flow, cached)
    return flow.features


def _unit_rows(first: recording.Recorded) -> Tokens:
    """Make the sequence after the embedding, with one unit row per token."""
    tokens = first.entered
    start = list(takewhile(lambda r: isinstance(r, Appended), tokens.trace))
    N = tokens.num_prefix + tokens.num_patches
    N += sum(record.num_tokens for record in start)
    rows = torch.eye(N, device=tokens.features.device)
    rows = rows.to(torch.promote_types(tokens.features.dtype, torch.float32))
    return Tokens(rows.expand(tokens.features.size(0), -1, -1), trace=start)


def _apply_trace(flow: Tokens, tokens: Tokens) -> Tokens:
    """Apply the reductions of ``tokens`` that ``flow`` lacks to its rows."""
    rows = flow.features
    for record in tokens.trace[len(flow.trace) :]:
        rows = F.normalize(record.apply(rows), p=1, dim=-1)
    return tokens.with_features(rows)
