# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""ONNX translations for operators that torch's exporter lacks or changes.

Each returns the same values as PyTorch on the CPU, including ties.
"""

from math import pi

import torch
from onnxscript import opset18 as op
from onnxscript.function_libs.torch_lib.ops.core import aten_arange_start_step

# PyTorch expands |x - y|^2 above this number of rows, for speed
EXPANDED_ABOVE = 25


def cdist(x1, x2, p, compute_mode):
    """``aten::_cdist_forward`` with p=2: (B, N, C), (B, M, C) to (B, N, M).

    The rounding matches PyTorch, so equal tokens have equal distances.
    """
    if p != 2 or compute_mode:
        raise NotImplementedError(f'cdist with {p=}, {compute_mode=}')
    rows = max(x1.shape[-2], x2.shape[-2])
    square = (
        square_by_product if rows > EXPANDED_ABOVE else square_by_difference
    )
    return op.Sqrt(square(x1, x2))


def square_by_product(x1, x2):
    """Squared distances by a product: |x|^2 - 2 x y + |y|^2."""
    last = op.Constant(value_ints=[-1])
    norm1 = op.ReduceSum(op.Mul(x1, x1), last, keepdims=1)
    norm2 = op.ReduceSum(op.Mul(x2, x2), last, keepdims=1)
    unit = op.Constant(value_float=1.0)
    ones1 = op.Expand(unit, op.Shape(norm1))
    ones2 = op.Expand(unit, op.Shape(norm2))
    twice = op.Mul(x1, op.Constant(value_float=-2.0))
    left = op.Concat(twice, norm1, ones1, axis=-1)
    right = op.Concat(x2, ones2, norm2, axis=-1)
    squares = op.MatMul(left, op.Transpose(right, perm=[0, 2, 1]))
    return op.Relu(squares)


def square_by_difference(x1, x2):
    """Squared distances by differences, for few rows."""
    rows = op.Unsqueeze(x1, op.Constant(value_ints=[2]))
    columns = op.Unsqueeze(x2, op.Constant(value_ints=[1]))
    difference = op.Sub(rows, columns)
    last = op.Constant(value_ints=[-1])
    return op.ReduceSum(op.Mul(difference, difference), last, keepdims=0)


def searchsorted(
    sorted_sequence, self, out_int32=False, right=False, side=None, sorter=None
):
    """``aten::searchsorted`` per row: number of elements below a value."""
    if out_int32 or right or side or sorter is not None:
        raise NotImplementedError('searchsorted with non-default arguments')
    values = op.Unsqueeze(self, op.Constant(value_ints=[2]))
    elements = op.Unsqueeze(sorted_sequence, op.Constant(value_ints=[1]))
    below = op.Cast(op.Less(elements, values), to=7)  # int64
    last = op.Constant(value_ints=[-1])
    return op.ReduceSum(below, last, keepdims=0)


def stable_sort(self, stable=False, dim=-1, descending=False):
    """``aten::sort.stable`` as ONNX TopK, which keeps the order of ties."""
    dim_size = op.Shape(self, start=dim, end=dim + 1 or None)
    return op.TopK(self, dim_size, axis=dim, largest=descending, sorted=True)


def arange(
    start,
    end,
    step=1,
    # torch 2.8 takes arguments without a type for tensors
    dtype: int = -1,
    layout: str = '',
    device: str = '',
    pin_memory: bool = False,
):
    """``aten::arange.start_step``, a constant for fractional arguments.

    ONNX's Range rounds differently and may return one number more or fewer.
    """
    if not any(isinstance(number, float) for number in (start, end, step)):
        return aten_arange_start_step(start, end, step, dtype=dtype)
    numbers = torch.arange(start, end, step, dtype=torch.float32)
    return op.Constant(value_floats=numbers.tolist())


def gelu(self, approximate='none'):
    """``aten::gelu`` with an order of products that ONNX Runtime fuses."""
    if approximate == 'tanh':
        cube = op.Mul(op.Mul(self, self), self)
        inner = op.Mul(cube, op.Constant(value_float=0.044715))
        root = op.Constant(value_float=(2 / pi) ** 0.5)
        share = op.Tanh(op.Mul(op.Add(self, inner), root))
    else:
        share = op.Erf(op.Div(self, op.Constant(value_float=2**0.5)))
    product = op.Mul(self, op.Add(share, op.Constant(value_float=1.0)))
    return op.Mul(product, op.Constant(value_float=0.5))


def scaled_attention(query, key, value, attn_mask=None, scale=None, **options):
    """``aten::scaled_dot_product_attention`` with a fixed transposition.

    torch's translation computes the shape of the keys in every run.
    """
    if any(options.values()):
        raise NotImplementedError(f'attention with {options}')
    factor = op.Constant(value_float=scale or query.shape[-1] ** -0.5)
    *batch, tokens, channels = range(len(key.shape))
    keys = op.Transpose(key, perm=[*batch, channels, tokens])
    logits = op.MatMul(op.Mul(query, factor), keys)
    if attn_mask is not None:
        logits = op.Add(logits, attn_mask)
    return op.MatMul(op.Softmax(logits, axis=-1), value)


TRANSLATIONS = {
    torch.ops.aten.arange.start_step: arange,
    torch.ops.aten._cdist_forward.default: cdist,
    torch.ops.aten.gelu.default: gelu,
    torch.ops.aten.scaled_dot_product_attention.default: scaled_attention,
    torch.ops.aten.searchsorted.Tensor: searchsorted,
    torch.ops.aten.sort.stable: stable_sort,
}
