# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""ONNX translations equal PyTorch, and graphs are fast."""

import onnx
import onnxruntime
import torch
from installed import NEEDS_COMPILER
from torch import nn

from mmclca.deployment import write_onnx_to_time
from mmclca.deployment.onnx_operators import TRANSLATIONS

INF = torch.inf


class Operators(nn.Module):
    """Module that returns the results of all translated operators."""

    def forward(self, few, many, cdf, points, ties):
        fractions = [
            torch.arange(0.5 / K, 1 - 0.5 / K, 1 / K)
            for K in (*range(2, 10), 29, 58)
        ]
        return (
            torch.cdist(few, few),
            torch.cdist(many, many),
            torch.searchsorted(cdf, points),
            ties.argsort(dim=1, stable=True),
            ties.argsort(dim=1, descending=True, stable=True),
            few.sum() * 0 + torch.cat(fractions),
        )


@NEEDS_COMPILER
def test_translations_equal_pytorch():
    """One graph, because an export takes most of the time."""
    few, many = torch.randn(2, 9, 8), torch.randn(2, 40, 8)
    for x in (few, many):
        x[:, 1] = x[:, 0]
    # rows with padding and ties
    cdf = torch.tensor([[-INF, -INF, 0.2, 0.2, 0.5], [0.1, 0.2, 0.3, 0.4, 1]])
    points = torch.tensor([[0.1, 0.2, 0.6], [0.1, 0.25, 0.5]])
    tensors = (few, many, cdf, points, torch.randint(0, 3, (2, 40)))
    names = [str(i) for i in range(len(tensors))]
    program = torch.onnx.export(
        Operators().eval(),
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
    found = [torch.from_numpy(x) for x in found]
    expected = Operators()(*tensors)
    for ours, theirs in zip(found[:2], expected, strict=False):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=2e-3)
        far = theirs > 0.1  # the root amplifies rounding near 0
        torch.testing.assert_close(ours[far], theirs[far])
    for ours, theirs in zip(found[2:], expected[2:], strict=True):
        assert ours.equal(theirs)


@NEEDS_COMPILER
def test_file_to_time_has_merged_batch_norms(tmp_path):
    """ONNX Runtime does not merge them: it would run several times longer."""
    layers = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.AdaptiveAvgPool2d(1)
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(8, 2)).eval()
    write_onnx_to_time(model, (16, 16), tmp_path / 'model.onnx', batch=1)
    nodes = onnx.load(tmp_path / 'model.onnx').graph.node
    types = [node.op_type for node in nodes]
    assert 'Conv' in types and 'BatchNormalization' not in types
