# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""ONNX translations equal PyTorch, including ties and padding."""

import onnxruntime
import pytest
import torch
from torch import nn

from mmclca.deployment.onnx_operators import TRANSLATIONS


class Call(nn.Module):
    """Module that calls a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *tensors):
        return self.function(*tensors)


def in_onnx(function, *tensors):
    """Run a function as an ONNX graph."""
    names = [str(i) for i in range(len(tensors))]
    program = torch.onnx.export(
        Call(function).eval(),
        tensors,
        input_names=names,
        dynamo=True,
        custom_translation_table=TRANSLATIONS,
        verbose=False,
    )
    session = onnxruntime.InferenceSession(
        program.model_proto.SerializeToString(),
        providers=['CPUExecutionProvider'],
    )
    values = [tensor.numpy() for tensor in tensors]
    found = session.run(None, dict(zip(names, values, strict=True)))
    return torch.from_numpy(found[0])


def expect_equal(function, *tensors):
    assert in_onnx(function, *tensors).equal(function(*tensors))


@pytest.mark.parametrize('num_tokens', [9, 40])
def test_cdist_equals_pytorch(num_tokens):
    x = torch.randn(2, num_tokens, 8)
    x[:, 1] = x[:, 0]
    found = in_onnx(lambda x: torch.cdist(x, x), x)
    expected = torch.cdist(x, x)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=2e-3)
    far = expected > 0.1  # the root amplifies rounding near 0
    torch.testing.assert_close(found[far], expected[far])


def test_searchsorted_equals_pytorch_with_padding_and_ties():
    inf = torch.inf
    cdf = torch.tensor([[-inf, -inf, 0.2, 0.2, 0.5], [0.1, 0.2, 0.3, 0.4, 1]])
    points = torch.tensor([[0.1, 0.2, 0.6], [0.1, 0.25, 0.5]])
    expect_equal(torch.searchsorted, cdf, points)


@pytest.mark.parametrize('descending', [False, True])
@pytest.mark.slow
def test_stable_sort_keeps_the_order_of_ties(descending):
    def order(x):
        return x.argsort(dim=1, descending=descending, stable=True)

    expect_equal(order, torch.randint(0, 3, (2, 40)))


def test_arange_equals_pytorch_with_fractional_steps():
    def points(x):
        fractions = (
            torch.arange(0.5 / K, 1 - 0.5 / K, 1 / K) for K in range(2, 60)
        )
        return x + torch.cat(list(fractions))

    expect_equal(points, torch.zeros(1))
