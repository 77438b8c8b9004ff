# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Colors of the patches to which the class token attends least."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from mmclca.datasets.batches import batches
from mmclca.models.recording import Recorder, recording_copy, share_out
from mmclca.models.reduction.attention import Attended
from mmclca.models.reduction.tokens import Tokens

IGNORED = 0.3  # share of the patches


class LastAttention(Recorder):
    """Record the attention from CLS in the last layer, by patch.

    It is computed on request, once per batch.
    """

    entered: Tokens
    attended: Attended

    def observe(
        self,
        entered: Tokens,
        attended: Attended,
        softmax: Callable | None,
        left: Tokens,
    ) -> None:
        """Replace the record of the previous layer."""
        self.entered, self.attended = entered, attended

    @property
    def attention(self) -> Tensor:
        """Mean over heads, (B, P).

        A merged token shares its attention among its patches; dropped patches
        get 0.
        """
        attention = self.attended.cls_attn().mean(1)
        return share_out(attention, self.entered.patch_weights)


@torch.inference_mode()
def read_ignored_patches(
    model: Any, prepare: Callable, paths: Sequence[str]
) -> list[list[float]]:
    """Return quantiles, mean and deviation of the colors in these patches.

    Args:
        model (nn.Module): Classifier whose backbone has a class token.
        prepare (Callable): Its :class:`.Preparation`.
        paths (Sequence[str]): Photos.

    Returns:
        list[list[float]]: Numbers for each photo; empty if it is unreadable.
    """
    backbone = recording_copy(model, LastAttention).backbone
    rows: list[list[float]] = []
    for batch in batches(model, paths, prepare=prepare):
        colors: list[list[float]] = []
        if batch.images is not None:
            backbone.forward_tokens(batch.images)
            attention = backbone.recorder.attention
            colors = describe_colors(batch.images, attention)
        described = iter(colors)
        rows += [
            [] if position in batch.unread else next(described)
            for position in batch.positions
        ]
    return rows


def describe_colors(images: Tensor, attention: Tensor) -> list[list[float]]:
    """Describe the colors of the patches with the least attention.

    Args:
        images (Tensor): Normalized images (B, 3, H, W).
        attention (Tensor): Attention of each patch (B, P), on a square grid.
    """
    num_patches = attention.shape[1]
    side = images.shape[-1] // int(num_patches**0.5)
    pixels = F.unfold(images, side, stride=side).unflatten(1, (3, -1))
    number = max(1, int(IGNORED * num_patches))
    chosen = attention.argsort(dim=1, stable=True)[:, :number]
    index = chosen[:, None, None].expand(-1, 3, pixels.shape[2], -1)
    colors = pixels.gather(3, index).flatten(2)
    levels = torch.tensor([0.1, 0.5, 0.9]).to(colors)
    quantiles = colors.quantile(levels, dim=2)  # (3, B, 3)
    parts = [*quantiles, colors.mean(2), colors.std(2)]
    return torch.cat(parts, dim=1).tolist()
