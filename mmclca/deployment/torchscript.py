# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Export of a classifier to a TorchScript file."""

import json
from pathlib import Path

import torch

from mmclca.models import with_nearest
from mmclca.utils.files import replace_file

from .program import check_logits, noise
from .source import Exported, ExportSource


def write(source: ExportSource, out: Path) -> Exported:
    """Write the format ``torchscript``, for ``torch.jit.load``."""
    size = source.preprocessing.size
    with torch.no_grad():
        program = torch.jit.trace(with_nearest(source.model), noise(2, size))
    metadata = {'metadata.json': json.dumps(source.metadata)}

    def write_file(part: Path) -> float:
        torch.jit.save(program, str(part), _extra_files=metadata)
        return check_logits(source.model, torch.jit.load(str(part)), size)

    return Exported([out], replace_file(out, write_file))
