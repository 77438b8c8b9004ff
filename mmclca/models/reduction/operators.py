# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Operators that ``torch.onnx.export`` lacks or makes slow, in others.

:func:`mmclca.export_onnx` translates the operators themselves.
"""

import numpy as np
import torch
from torch import Tensor


def stable_order(x: Tensor, descending: bool = False) -> Tensor:
    """Sort each row of numbers (B, N); return the places, (B, N).

    Ties keep their order.
    """
    if torch.onnx.is_in_onnx_export():  # ONNX has one sort, which is stable
        return x.argsort(dim=1, descending=descending)
    return x.argsort(dim=1, descending=descending, stable=True)


def first_not_below(rows: Tensor, values: Tensor) -> Tensor:
    """Return the first place in sorted rows that is not below a value.

    Args:
        rows (Tensor): Numbers in ascending order, (B, N).
        values (Tensor): Values, (B, K).

    Returns:
        Tensor: Places, (B, K); N if all numbers are below the value.
    """
    if torch.onnx.is_in_onnx_export():
        return (rows.unsqueeze(1) < values.unsqueeze(2)).sum(dim=2)
    return torch.searchsorted(rows, values)


def unit_length(x: Tensor, eps: float = 1e-12) -> Tensor:
    """Divide vectors (..., C) by their lengths, or by ``eps`` if greater.

    The values equal ``torch.nn.functional.normalize``, which copies the
    lengths to all channels in an exported model.
    """
    return x / x.norm(dim=-1, keepdim=True).clamp(min=eps)


def euclidean(x: Tensor) -> Tensor:
    """Compute the distances between tokens (B, N, C), (B, N, N)."""
    if not torch.onnx.is_in_onnx_export():
        return torch.cdist(x, x)
    squares = x.square().sum(dim=2, keepdim=True)
    squares = squares + squares.transpose(1, 2) - 2 * x @ x.transpose(1, 2)
    return squares.clamp(min=0).sqrt()


def even_points(start: float, end: float, step: float, like: Tensor) -> Tensor:
    """Return float32 numbers from ``start`` to below ``end``, (K,)."""
    if torch.onnx.is_in_onnx_export():  # its range may have another length
        numbers = np.arange(start, end, step).tolist()
        return torch.tensor(numbers, device=like.device)
    return torch.arange(start, end, step, device=like.device)
