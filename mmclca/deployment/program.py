# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A classifier as a graph of torch's operators, and as a ``.pt2`` file."""

from copy import deepcopy
from pathlib import Path

import torch
from torch import nn
from torch.export import Dim, ExportedProgram

from mmclca.models import fuse
from mmclca.utils.atomic_write import replace_file

from .checks import check_logits, noise


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
    program = torch.export.export(
        fuse(deepcopy(model)), (noise(2, size),), dynamic_shapes=shapes
    )
    for node in program.graph.nodes:  # paths on this machine
        node.meta.pop('stack_trace', None)
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
