# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A classifier as a graph of torch's operators, and as a ``.pt2`` file.

An exported model answers as the model does, or it is not kept.
"""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram
from torch.fx import GraphModule

from mmclca.models import fuse, with_nearest
from mmclca.utils.files import replace_file

TOLERANCE = 1e-4
BATCH_SIZES = (1, 3)


def noise(batch: int, size: tuple[int, int]) -> Tensor:
    """Return images of noise, always the same ones, (B, 3, H, W)."""
    generator = torch.Generator().manual_seed(batch)
    return torch.randn(batch, 3, *size, generator=generator)


@torch.inference_mode()
def check_logits(
    model: nn.Module,
    exported: Callable[[Tensor], Tensor],
    size: tuple[int, int],
) -> float:
    """Compare what is exported in float32 at two batch sizes.

    Args:
        model (nn.Module): The classifier, in evaluation mode.
        exported (Callable): Gives the logits (B, classes) of images, with
            ``nearest`` (B,) where the head keeps references.
        size (tuple[int, int]): Height and width of an image.

    Returns:
        float: The largest difference.

    Raises:
        ValueError: If logits differ by more than 1e-4, relative and
            absolute.
    """
    largest, model = 0.0, with_nearest(model)
    for batch in BATCH_SIZES:
        images = noise(batch, size)
        expected, found = _columns(model(images)), _columns(exported(images))
        error = (found - expected).abs()
        largest = max(largest, error.max().item())
        if not (error <= TOLERANCE * (1 + expected.abs())).all():
            raise ValueError(
                f'not exported: logits differ by {error.max():.2g} at batch '
                f'size {batch} from PyTorch, allowed is {TOLERANCE:g}'
            )
    return largest


def _columns(found: Tensor | tuple[Tensor, ...]) -> Tensor:
    return torch.column_stack(found) if isinstance(found, tuple) else found


@torch.no_grad()
def classifier_program(
    model: nn.Module, size: tuple[int, int]
) -> ExportedProgram:
    """Trace a classifier: normalized images to logits, of any batch.

    Parallel branches and affine maps are joined in it
    (:func:`mmclca.models.backbones.fuse`); the model stays as it is. ATS pads
    to the count of the stage in such a graph; the logits are those of the
    shorter sequences.
    """
    shapes = ({0: Dim('batch', min=1)},)
    model = with_nearest(fuse(deepcopy(model)))
    program = torch.export.export(
        model, (noise(2, size),), dynamic_shapes=shapes
    )
    for part in program.graph_module.modules():  # of loops, too
        for node in part.graph.nodes if isinstance(part, GraphModule) else ():
            node.meta.pop('stack_trace', None)  # paths on this machine
    return program


def export_pt2(
    model: nn.Module,
    size: tuple[int, int],
    path: Path,
    metadata: dict[str, str],
) -> float:
    """Write a classifier as a ``torch.export`` file, checked.

    Args:
        model (nn.Module): See :func:`classifier_program`.
        size (tuple[int, int]): See there.
        path (Path): The file, replaced where it exists.
        metadata (dict[str, str]): Its ``extra_files``.

    Returns:
        float: The largest difference of a logit from those of the model.

    Raises:
        ValueError: If logits differ; no file is left then.
    """
    program = classifier_program(model, size)

    def write(part: Path) -> float:
        torch.export.save(program, part, extra_files=metadata)
        return check_logits(model, torch.export.load(part).module(), size)

    return replace_file(path, write)
