# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Export of a classifier to a ``.pt2`` file of ``torch.export``."""

from io import BytesIO
from pathlib import Path

import torch
from torch import nn

from mmclca.utils.files import replace_file

from .program import check_logits, classifier_program
from .source import Exported, ExportSource


def write(source: ExportSource, out: Path) -> Exported:
    """Write the format ``pt2``."""
    size, metadata = source.preprocessing.size, source.metadata
    difference = export_pt2(source.model, out, size, metadata)
    return Exported([out], difference)


def export_pt2(
    model: nn.Module,
    path: Path,
    size: tuple[int, int],
    metadata: dict[str, str],
) -> float:
    """Write a classifier to a ``torch.export`` file and check it.

    Args:
        model (nn.Module): Classifier in evaluation mode on the CPU.
        path (Path): Output file; an existing file is replaced.
        size (tuple[int, int]): Image height and width.
        metadata (dict[str, str]): ``extra_files`` in the file.

    Returns:
        float: Largest absolute difference between exported and PyTorch
        logits.

    Raises:
        Error: If the logits differ. The file is not written.
    """
    program = classifier_program(model, size)

    def write(part: Path) -> float:
        content = BytesIO()  # given a path, torch hides why writing fails
        torch.export.save(program, content, extra_files=metadata)
        part.write_bytes(content.getvalue())
        return check_logits(model, torch.export.load(part).module(), size)

    return replace_file(path, write)
