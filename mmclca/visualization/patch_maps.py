# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Which patches the tokens after each reduction stand for."""

from dataclasses import replace

import torch
from torch import Tensor

from mmclca.models.reduction.tokens import Tokens
from mmclca.models.reduction.trace import Appended


def stage_weights(tokens: Tokens) -> list[Tensor]:
    """What the tokens that each reduction leaves stand for.

    Args:
        tokens (Tokens): The final ones of a forward pass.

    Returns:
        list[Tensor]: Weights (B, N, P) a reduction, of the patches of the
        image in each token; see :func:`.trace.patch_weights`.
        Stages before it are in them.
    """
    return [
        replace(tokens, trace=tokens.trace[:step]).patch_weights
        for step, record in enumerate(tokens.trace, start=1)
        if not isinstance(record, Appended)
    ]


def survivor_maps(tokens: Tokens, hw: tuple[int, int]) -> list[Tensor]:
    """For each reduction, how much of each patch one token still carries.

    Args:
        tokens (Tokens): The final ones of a forward pass.
        hw (tuple[int, int]): Height and width of the grid of patches.

    Returns:
        list[Tensor]: A map (B, h, w) a stage: 1 where the patch has a token
        of its own (a little less in DPC-KNN), the largest weight in a mixed
        token where it is fused or merged, 0 where it is dropped.
    """
    return [w.amax(dim=1).unflatten(1, hw) for w in stage_weights(tokens)]


def assignment_maps(tokens: Tokens, hw: tuple[int, int]) -> list[Tensor]:
    """For each reduction, the token that each patch mostly goes into.

    Args:
        tokens (Tokens): The final ones of a forward pass.
        hw (tuple[int, int]): Height and width of the grid of patches.

    Returns:
        list[Tensor]: A map (B, h, w) a reduction, int64: the position of the
        token in the sequence that the reduction leaves, the first of equal
        ones; -1 where the patch is dropped.
    """
    return [assigned(w).unflatten(1, hw) for w in stage_weights(tokens)]


def assigned(weights: Tensor) -> Tensor:
    """The token of largest weight for each patch, (B, N, P) to (B, P)."""
    # argmax takes any of equal ones
    most = weights.amax(dim=1, keepdim=True)
    token = (weights == most).to(torch.uint8).argmax(dim=1)
    return token.masked_fill(most[:, 0] == 0, -1)


def share_out(values: Tensor, weights: Tensor) -> Tensor:
    """What tokens have, as what their patches have.

    A token hands it to its patches in proportion to their weights in it.

    Args:
        values (Tensor): Of each token, (B, N).
        weights (Tensor): Weights of the patches in each token, (B, N, P).

    Returns:
        Tensor: (B, P).
    """
    total = weights.sum(dim=-1, keepdim=True)
    shares = weights / total.masked_fill(total == 0, 1.0)
    return (shares * values.unsqueeze(-1)).sum(dim=1)
