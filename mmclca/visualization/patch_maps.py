# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Which patches the tokens after each reduction stand for."""

import torch
from torch import Tensor

from mmclca.models.reduction.trace import Appended, patch_weights


def stage_weights(
    trace: list, batch_size: int, num_patches: int, num_prefix: int = 1
) -> list[Tensor]:
    """What the tokens that each reduction leaves stand for.

    Args:
        trace (list): ``Tokens.trace`` of a forward pass.
        batch_size (int): Images of that pass.
        num_patches (int): Patches P of an image.
        num_prefix (int): Tokens before the patches. Defaults to 1, CLS.

    Returns:
        list[Tensor]: Weights (B, N, P) a reduction, of the patches of the
        image in each token; see :func:`.trace.patch_weights`.
        Stages before it are in them.
    """
    return [
        patch_weights(trace[:step], batch_size, num_patches, num_prefix)
        for step, record in enumerate(trace, start=1)
        if not isinstance(record, Appended)
    ]


def survivor_maps(
    trace: list, batch_size: int, hw: tuple[int, int], num_prefix: int = 1
) -> list[Tensor]:
    """For each reduction, how much of each patch one token still carries.

    Args:
        trace (list): ``Tokens.trace`` of a forward pass.
        batch_size (int): Images of that pass.
        hw (tuple[int, int]): Height and width of the grid of patches.
        num_prefix (int): Tokens before the patches. Defaults to 1, CLS.

    Returns:
        list[Tensor]: A map (B, h, w) a stage: 1 where the patch has a token
        of its own (a little less in DPC-KNN), the largest weight in a mixed
        token where it is fused or merged, 0 where it is dropped.
    """
    weights = stage_weights(trace, batch_size, hw[0] * hw[1], num_prefix)
    return [w.amax(dim=1).unflatten(1, hw) for w in weights]


def assignment_maps(
    trace: list, batch_size: int, hw: tuple[int, int], num_prefix: int = 1
) -> list[Tensor]:
    """For each reduction, the token that each patch mostly goes into.

    Args:
        trace (list): ``Tokens.trace`` of a forward pass.
        batch_size (int): Images of that pass.
        hw (tuple[int, int]): Height and width of the grid of patches.
        num_prefix (int): Tokens before the patches. Defaults to 1, CLS.

    Returns:
        list[Tensor]: A map (B, h, w) a reduction, int64: the position of the
        token in the sequence that the reduction leaves, the first of equal
        ones; -1 where the patch is dropped.
    """
    weights = stage_weights(trace, batch_size, hw[0] * hw[1], num_prefix)
    return [assigned(w).unflatten(1, hw) for w in weights]


def assigned(weights: Tensor) -> Tensor:
    """The token of largest weight for each patch, (B, N, P) to (B, P)."""
    # argmax takes any of equal ones
    most = weights.amax(dim=1, keepdim=True)
    token = (weights == most).to(torch.uint8).argmax(dim=1)
    return token.masked_fill(most[:, 0] == 0, -1)
