# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Operator graph of a classifier, and the check of exported logits."""

from collections.abc import Callable
from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram
from torch.fx import GraphModule

from mmclca.errors import Error
from mmclca.models import fuse, with_nearest
from mmclca.models.reduced.transformers_vit import with_tensors
from mmclca.utils.torch_versions import COMPILES, require_torch

TOLERANCE = 1e-4
BATCH_SIZES = (1, 3)


def noise(batch: int, size: tuple[int, int]) -> Tensor:
    """Random images (B, 3, H, W), the same in every call."""
    generator = torch.Generator().manual_seed(batch)
    return torch.randn(batch, 3, *size, generator=generator)


@torch.inference_mode()
def check_logits(
    model: nn.Module,
    exported: Callable[[Tensor], Tensor],
    size: tuple[int, int],
) -> float:
    """Compare exported logits with the model at two batch sizes.

    ``exported`` maps images to logits (B, classes), and to ``nearest`` (B,)
    if the head stores references. Returns the largest absolute difference;
    raises an Error above 1e-4, relative plus absolute.
    """
    largest, model = 0.0, with_nearest(with_tensors(model))
    for batch in BATCH_SIZES:
        images = noise(batch, size)
        expected = join_outputs(model(images))
        error = (join_outputs(exported(images)) - expected).abs()
        largest = max(largest, error.max().item())
        if not (error <= TOLERANCE * (1 + expected.abs())).all():
            raise Error(
                f'not exported: logits differ by {error.max():.2g} at batch '
                f'size {batch} from PyTorch, allowed is {TOLERANCE:g}'
            )
    return largest


def join_outputs(outputs: Tensor | tuple[Tensor, ...]) -> Tensor:
    """Join logits (B, classes) and ``nearest`` (B,), if any."""
    if isinstance(outputs, tuple):
        return torch.column_stack(outputs)
    return outputs


@torch.no_grad()
def classifier_program(
    model: nn.Module, size: tuple[int, int], batch: int | None = None
) -> ExportedProgram:
    """Trace a classifier from normalized images to logits.

    The program is fused (:func:`mmclca.models.backbones.fuse`); the model is
    left unchanged. Outputs are as for ``exported`` in :func:`check_logits`.
    In the program, ATS pads sequences to the token number of the stage, which
    does not change the logits.

    Args:
        model (nn.Module): Classifier in evaluation mode.
        size (tuple[int, int]): Image height and width.
        batch (int, optional): Fixed batch size, which is traced faster.
            Defaults to None, any batch size.

    Raises:
        ImportError: If torch is older than 2.8.
    """
    require_torch(
        COMPILES, 'export', 'training, test, predict and fit work without it'
    )
    shapes = None if batch else ({0: Dim('batch', min=1)},)
    model = with_nearest(with_tensors(fuse(deepcopy(model))))
    program = torch.export.export(
        model, (noise(batch or 2, size),), dynamic_shapes=shapes
    )
    for part in program.graph_module.modules():  # includes loop bodies
        for node in part.graph.nodes if isinstance(part, GraphModule) else ():
            node.meta.pop('stack_trace', None)  # contains local paths
    return program
